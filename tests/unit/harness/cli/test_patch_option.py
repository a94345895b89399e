"""``--patch FILE``: a bug or a mend of the user's own, in the command and in all that it starts."""

import hashlib
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from splitbrain.contracts.experiment import Experiment
from splitbrain.harness.pool.child_environment import child_environment
from splitbrain.harness.run.plan_record import new_plan
from splitbrain.history.plan import AppliedPatch, Plan, decode_plan, encode_plan, reproduce_command
from splitbrain.systems.kraft.adapter import KraftSystem
from splitbrain.systems.kraft.planted_bugs import FOLDER
from splitbrain.workloads.workload import workload
from tests.plans import changed, plan_with

BUG = FOLDER / "ack-before-commit.patch"


def told(*words: object) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-P", "-m", "splitbrain.harness.cli", *map(str, words)],
        check=False,
        capture_output=True,
        text=True,
        env=child_environment(),
    )


def reversed_diff(text: str) -> str:
    """The diff that takes another back."""
    lines = text[text.index("--- ") :].splitlines()
    for place, line in enumerate(lines):
        if head := re.fullmatch(r"@@ -(\S+) \+(\S+) @@", line):
            lines[place] = f"@@ -{head[2]} +{head[1]} @@"
        elif line[:1] in {"+", "-"} and line[:4] not in {"--- ", "+++ "}:
            lines[place] = {"+": "-", "-": "+"}[line[0]] + line[1:]
    return "\n".join(lines) + "\n"


@pytest.fixture(scope="module")
def bug(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A bug of a user's own: by another name, and with another ending."""
    file = tmp_path_factory.mktemp("mine") / "too early.diff"
    file.write_text(BUG.read_text())
    return file


@pytest.fixture(scope="module")
def sweep(bug: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """The run folder of a world with the user's bug, and what its sweep printed."""
    runs = tmp_path_factory.mktemp("runs")
    done = told("sim", "--seeds", "0:1", "--patch", bug, "--runs-folder", runs)
    assert done.returncode == 1, done.stderr
    return (runs / "latest").resolve(), done.stdout


def plan_of(folder: Path) -> Plan:
    return decode_plan((folder / "plan.json").read_bytes())


def test_the_plan_of_a_world_has_the_patch(sweep: tuple[Path, str], bug: Path) -> None:
    plan = plan_of(sweep[0])
    digest = hashlib.sha256(bug.read_bytes()).hexdigest()
    assert plan.patches == (AppliedPatch(name=bug.name, digest=digest, text=bug.read_text()),)
    assert plan.system_versions["kraft"].endswith("+too early")


def test_the_line_that_a_sweep_prints_replays_the_failure(
    sweep: tuple[Path, str], bug: Path
) -> None:
    folder, printed = sweep
    # While it goes on, and in the summary.
    lines = {line.strip() for line in printed.splitlines() if "splitbrain replay /" in line}
    (line,) = lines
    words = shlex.split(line)
    assert words[1:] == ["replay", str(folder), "--patch", str(bug)]
    done = told(*words[1:])
    assert done.returncode == 1
    assert re.match(r"failed again in step [\d,]+, same trace", done.stdout)


@pytest.mark.parametrize("command", ["replay", "shrink"])
def test_a_run_folder_applies_no_patch_unasked(sweep: tuple[Path, str], command: str) -> None:
    done = told(command, sweep[0])
    assert done.returncode == 64
    assert "was run with the patch too early.diff" in done.stderr
    assert "Add --patch FILE" in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_a_mend_is_tried_on_a_run_that_failed(
    sweep: tuple[Path, str], bug: Path, tmp_path: Path
) -> None:
    mend = tmp_path / "mend.patch"
    mend.write_text(reversed_diff(bug.read_text()))
    done = told("replay", sweep[0], "--patch", bug, "--patch", mend)
    assert (done.returncode, done.stderr) == (0, "")
    first, second = done.stdout.splitlines()
    assert first == "with mend.patch, which the run did not have"
    assert second.startswith("nothing failed in ")


def test_a_shrunk_run_has_the_patch_too(sweep: tuple[Path, str], bug: Path, tmp_path: Path) -> None:
    words = ("--replays", 20, "--runs-folder", tmp_path, "--patch", bug)
    done = told("shrink", sweep[0], *words)
    assert done.returncode == 0, done.stderr
    small = (tmp_path / "latest").resolve()
    assert plan_of(small).patches == plan_of(sweep[0]).patches
    commands = re.findall(r"splitbrain (?:replay|shrink) /[^`\n]*", done.stdout)
    assert len(commands) == 2
    again = f"{small} --patch {shlex.quote(str(bug))}"
    assert all(command.endswith(again) for command in commands)


def test_a_patch_that_cannot_be_used_is_one_sentence(bug: Path, tmp_path: Path) -> None:
    (tmp_path / "words.patch").write_text("hello\n")
    (tmp_path / "other.patch").write_text(reversed_diff(bug.read_text()))
    for words, said in {
        ("test", "--patch", tmp_path / "none.patch"): "cannot be read: No such file",
        ("sim", "--patch", tmp_path): "cannot be read: Is a directory",
        ("test", "--patch", tmp_path / "words.patch"): "has no line that begins with '--- '",
        ("shrink", tmp_path, "--patch", tmp_path / "other.patch"): "does not fit nodes/",
        ("replay", tmp_path, "--patch", bug, "--patch", bug): "does not fit nodes/",
    }.items():
        done = told(*words)
        assert done.returncode == 64
        assert said in done.stderr
        assert len(done.stderr.splitlines()) == 1


def test_what_makes_a_run_again_names_the_users_patches_alone() -> None:
    own = AppliedPatch(name="my votes.patch", digest="0", text="x")
    planted = AppliedPatch(name="ack-before-commit", digest="0", text="y", is_planted=True)
    plan = changed(plan_with(), patches=(own, planted))
    assert decode_plan(encode_plan(plan)) == plan
    ends = " --patch 'my votes.patch' --made-by 0.1.0  # takes the file my votes.patch"
    assert reproduce_command(plan).endswith(ends)
    pinned = changed(plan, pinned=True, replay_of="runs/a")
    assert reproduce_command(pinned).endswith(ends)


def test_a_plan_has_the_text_of_its_planted_bugs() -> None:
    experiment = Experiment(system="kraft", bugs=("ack-before-commit",))
    load = workload("register", seed=1, slots=1, readers=frozenset(), options={})
    plan = new_plan(
        experiment, KraftSystem(), load, test="a", run_id="r", observers=(), planned_faults=0
    )
    (patch,) = plan.patches
    assert (patch.name, patch.text, patch.is_planted) == (BUG.stem, BUG.read_text(), True)
