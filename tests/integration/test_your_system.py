"""The page on a system of one's own is true: its system is run, judged, replayed, shrunk and swept.

Named as a file, and with things of all other sorts as a package.
"""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import msgspec
import pytest

from splitbrain.runtimes.docker.images import ROOT
from tests.packages import offer

PAGE = (ROOT / "docs" / "your-system.md").read_text()
MODULE, COPIES, LIBRARY = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
ADAPTERS = (ROOT / "docs" / "adapters.md").read_text()
(CABINET,) = re.findall(r"```python\n(.*?)```", ADAPTERS, re.DOTALL)

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

#: A shelf with a workload, a model, a checker and a fault of its own.
MORE = """
from shelf import Shelf
from splitbrain.checker.models.model import KeyedModel
from splitbrain.checker.own_checker import OwnChecker
from splitbrain.checker.verdict import CheckResult, Verdict
from splitbrain.contracts.operations import Operation
from splitbrain.history.functions import READ, RECORD
from splitbrain.nemesis import acts
from splitbrain.nemesis.expectations import NodeIs
from splitbrain.nemesis.fault_kind import Course, FaultKind, Step
from splitbrain.nemesis.families.processes import answering, running
from splitbrain.workloads.keys import KeyedWorkload, KeyRotation

class WideShelf(Shelf):
    name = "wide-shelf"
    def workloads(self, state_machine):
        return ("notes",)

class Notes(KeyedWorkload):
    name = "notes"
    checkers = ("linearizability:note", "few-notes")
    functions = {"read": READ, "write": RECORD}
    def __init__(self, seed, slots):
        super().__init__(seed, slots, KeyRotation("note", lanes=1, slots=slots))
    @classmethod
    def of(cls, seed, slots, readers, options):
        return cls(seed, slots)
    def operation(self, slot, n):
        key = self._keys.key(0, n)
        return Operation("write", key, n) if slot % 2 else Operation("read", key, None)
    def options(self):
        return {}

class Note(KeyedModel):
    name = "note"
    functions = frozenset({"read", "write"})
    def step(self, state, call):
        if call.f == "write":
            return True, call.argument
        return not call.known or call.result == state, state

class FewNotes(OwnChecker):
    name = "few-notes"
    promise = "There are at most a million."
    def check(self, evidence, budget):
        return CheckResult("few-notes", Verdict.VALID, f"Counted {len(evidence.operations) > 0}.")

def _course(setting, options):
    hit = setting.hit
    frozen = tuple(NodeIs(node, "paused") for node in hit)
    return Course(
        steps=(Step((acts.Pause(hit),), seen=frozen),),
        heal=(acts.Resume(hit),),
        healed=running(hit),
        resumed=answering(hit),
    )

NAP = FaultKind(name="nap", summary="Pauses.", needs=frozenset({"pause"}), course=_course)
"""
OFFERED = {
    "workloads": {"notes": "shelf_more:Notes"},
    "models": {"note": "shelf_more:Note"},
    "checkers": {"few-notes": "shelf_more:FewNotes"},
    "nemesis": {"nap": "shelf_more:NAP"},
}


#: Each process whose clients ask leaves a file.
TELLS_WHO_ASKS = """

import os, pathlib

def tell(ask):
    def asked(self, *words):
        pathlib.Path(f"asked-by-{os.getpid()}").touch()
        return ask(self, *words)
    return asked

Shelf.ask = tell(Shelf.ask)
"""


@pytest.fixture
def beside(tmp_path: Path) -> Path:
    """A folder with the page's file."""
    (tmp_path / "shelf.py").write_text(MODULE)
    return tmp_path


@pytest.fixture
def packages(tmp_path: Path) -> Path:
    """The page's package with more in it, as an installer lays it down."""
    folder = tmp_path / "packages"
    folder.mkdir()
    (folder / "shelf.py").write_text(MODULE)
    (folder / "shelf_more.py").write_text(MORE)
    (entry_points,) = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)
    of_page = tomllib.loads(entry_points)["project"]["entry-points"]["splitbrain.systems"]
    systems = {**of_page, "wide-shelf": "shelf_more:WideShelf"}
    offer(folder, "shelf", systems=systems, **OFFERED)
    return folder


def splitbrain(
    folder: Path, *words: str, packages: Path | None = None
) -> "subprocess.CompletedProcess[str]":
    path = {} if packages is None else {"PYTHONPATH": str(packages)}
    return subprocess.run(
        [sys.executable, "-P", "-m", "splitbrain.harness.cli", *words],
        check=False,
        cwd=folder,
        env={**os.environ, **path, "COLUMNS": "200"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        encoding="utf-8",
    )


def command(nemesis: str) -> list[str]:
    (found,) = re.findall(rf"^splitbrain (test .* --nemesis {nemesis}:n1 .*)$", PAGE, re.MULTILINE)
    return [*found.split(), "--seed", "3", "--no-analyze"]


def test_the_page_has_it_valid_while_it_is_paused(beside: Path) -> None:
    valid = splitbrain(beside, *command("pause"))
    assert valid.returncode == 0, valid.stdout


def test_its_file_is_loaded_by_worker_processes_too(beside: Path) -> None:
    with (beside / "shelf.py").open("a") as adapter:
        adapter.write(TELLS_WHO_ASKS)
    words = "test --system shelf.py:Shelf --nodes 1 --runtime local --nemesis none --time-limit 2"
    options = ("--rate", "6000", "--concurrency", "40", "--seed", "3", "--no-analyze")
    shared = splitbrain(beside, *words.split(), *options)
    assert shared.returncode == 0, shared.stdout
    assert len([*beside.glob("asked-by-*")]) > 1


def test_the_page_has_it_invalid_once_it_is_killed_and_a_run_folder_runs_no_file_unasked(
    beside: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    invalid = splitbrain(beside, *command("kill"))
    assert invalid.returncode == 1, invalid.stdout
    assert "socket.send() raised" not in invalid.stdout
    file = f"{beside}/shelf.py:Shelf"
    (again,) = re.findall(r"^Reproduce   splitbrain (.*)$", invalid.stdout, re.MULTILINE)
    assert again.startswith("test --system shelf.py:Shelf ")
    assert again.endswith("  # takes the file shelf.py")

    # In another folder, as whoever is handed the folder.
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    run = str(max((beside / "runs" / "shelf-register").iterdir()))
    assert splitbrain(elsewhere, "check", run, "--no-analyze").returncode == 1
    for refusing in ("replay", "shrink"):
        refused = splitbrain(elsewhere, refusing, run)
        assert refused.returncode == 64, refused.stdout
        assert f"Add its file: splitbrain {refusing} {run} --system {file}" in refused.stdout
    other = splitbrain(elsewhere, "replay", run, "--system", "kraft")
    assert "is a run of the system 'shelf', not of 'kraft'" in other.stdout
    # Whoever repaired their adapter meanwhile replays another one.
    with (beside / "shelf.py").open("a") as adapter:
        adapter.write("# Repaired.\n")
    replayed = splitbrain(elsewhere, "replay", run, "--system", file, "--no-analyze")
    assert replayed.returncode == 1, replayed.stdout
    assert re.search(
        r"^changed since the run: shelf.py was \w{16}, now \w{16}$", replayed.stdout, re.MULTILINE
    )


def test_the_page_has_copies_valid_unless_each_node_reads_its_own(beside: Path) -> None:
    (beside / "shelves.py").write_text(COPIES)
    words = re.findall(r"^splitbrain (test --system shelves.*)$", PAGE, re.MULTILINE)
    quick = ("--seed", "3", "--no-analyze")
    valid = splitbrain(beside, *words[0].split(), *quick)
    assert valid.returncode == 0, valid.stdout
    # Somebody must read a key at the cut node that another one wrote meanwhile: a longer cut.
    plan = beside / "cut.json"
    cut = {"kind": "partition", "target": "n3", "at_ms": 2000, "duration_ms": 6000}
    plan.write_text(json.dumps({"faults": [cut]}))
    invalid = splitbrain(
        beside, *words[1].replace("partition:n3", str(plan)).split(), *quick, "--rate", "100"
    )
    assert invalid.returncode == 1, invalid.stdout
    assert "cannot be ordered" in invalid.stdout
    wrong = splitbrain(beside, *words[1].replace("=local", "=anywhere").split())
    assert "shelves does not know 'anywhere' as reads. Choose primary or local" in wrong.stdout
    assert wrong.returncode == 64


def test_the_page_has_a_client_library_valid_unless_the_node_is_killed(beside: Path) -> None:
    (beside / "library_shelf.py").write_text(LIBRARY)
    (found,) = re.findall(r"^splitbrain (test --system library_shelf.*)$", PAGE, re.MULTILINE)
    words = [*found.split(), "--seed", "3", "--no-analyze"]
    invalid = splitbrain(beside, *words)
    assert invalid.returncode == 1, invalid.stdout
    assert "cannot be ordered" in invalid.stdout
    words[words.index("pause,kill")] = "pause"
    valid = splitbrain(beside, *words)
    assert valid.returncode == 0, valid.stdout
    # Of operations that were under way.
    assert "may have happened or not" in valid.stdout


@pytest.mark.nightly
def test_its_run_is_shrunk_and_repeated_by_the_lines_that_it_prints(
    beside: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    invalid = splitbrain(beside, *command("kill"))
    (again,) = re.findall(r"^Reproduce   splitbrain (.*)$", invalid.stdout, re.MULTILINE)
    file = f"{beside}/shelf.py:Shelf"
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    run = str(max((beside / "runs" / "shelf-register").iterdir()))
    words = ("--tries", "1", "--at-least", "1", "--runs", "1")
    shrunk = splitbrain(elsewhere, "shrink", run, "--system", file, *words)
    assert shrunk.returncode == 0, shrunk.stdout
    assert re.search(rf"^replay: .* --system {re.escape(file)}", shrunk.stdout, re.MULTILINE)
    shutil.copy(beside / "shelf.py", elsewhere)
    repeated = splitbrain(elsewhere, *shlex.split(again, comments=True), "--no-analyze")
    assert repeated.returncode == 1, repeated.stdout


@pytest.mark.nightly
def test_a_suite_beside_the_file_runs_it(beside: Path) -> None:
    suite = beside / "own.toml"
    suite.write_text(
        'name = "own"\n[[matrix]]\nname = "shelf"\nsystem = "shelf.py:Shelf"\nnodes = 1\n'
        'runtime = "local"\nnemesis = "pause:n1"\ntime_limit = 8\nseeds = [3]\n'
    )
    elsewhere = beside / "elsewhere"
    elsewhere.mkdir()
    night = splitbrain(elsewhere, "suite", str(suite))
    assert night.returncode == 0, night.stdout


def test_a_package_runs_its_own_workload_fault_model_and_checker(
    packages: Path, tmp_path: Path
) -> None:
    words = "test --system wide-shelf --nodes 1 --runtime local --nemesis nap:n1 --time-limit 8"
    options = ("--seed", "3", "--no-analyze")
    valid = splitbrain(tmp_path, *words.split(), *options, packages=packages)
    assert valid.returncode == 0, valid.stdout
    (results,) = tmp_path.glob("runs/wide-shelf-notes/*/results.json")
    judged = msgspec.json.decode(results.read_bytes())
    verdicts = {row["checker"]: row["verdict"] for row in judged["checkers"]}
    assert verdicts["linearizability:note"] == verdicts["few-notes"] == "valid"
    assert [fault["kind"] for fault in judged["faults"]] == ["nap"]
    # Whoever has not the package is told, and nothing is called valid that nobody judged.
    run = str(results.parent)
    again = splitbrain(tmp_path, "check", run, "--no-analyze")
    assert again.returncode == 2, again.stdout
    assert "there is no model called 'note'" in again.stdout
    refused = splitbrain(tmp_path, "replay", run)
    assert refused.returncode == 64, refused.stdout
    assert "there is no system called 'wide-shelf'" in refused.stdout


def test_it_is_listed_as_ours_are(packages: Path, beside: Path) -> None:
    listed = splitbrain(beside, "systems", packages=packages)
    assert listed.returncode == 0, listed.stdout
    assert re.search(r"^shelf\s*$.*?nodes\s+1\s", listed.stdout, re.MULTILINE | re.DOTALL)
