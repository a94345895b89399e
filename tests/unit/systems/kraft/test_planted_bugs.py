"""Every planted bug is a patch that fits, says what it does, and plants nothing but itself."""

import itertools
import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest

from splitbrain.contracts.errors import UsageError
from splitbrain.contracts.experiment import Experiment
from splitbrain.contracts.scenario import Scenario
from splitbrain.nodes.quorum import durable_state
from splitbrain.patched.loading import PatchedModules
from splitbrain.patched.patch import read_patch
from splitbrain.simulation.kraft.system import KraftSimulation
from splitbrain.systems.kraft.planted_bugs import (
    FOLDER,
    PlantedBug,
    described,
    patches_of,
    planted_bugs,
)
from splitbrain.systems.kraft.state_machines import check_options

ROOT = Path(__file__).parents[4]
METADATA = "metadata"
UNDERLINES = str.maketrans(".-", "__")
DIFF = "--- a/x.py\n+++ b/x.py\n@@ -1 +1 @@\n-a\n+b\n"


def fit_together(names: Sequence[str]) -> bool:
    try:
        return len(patches_of(names, METADATA)) == len(names)
    except ValueError as refusal:
        return "cannot be planted together" not in str(refusal)


@pytest.mark.parametrize("bug", planted_bugs().values(), ids=lambda bug: bug.name)
def test_a_bug_has_a_sentence_a_source_and_a_fault(bug: PlantedBug) -> None:
    assert bug.mechanism.endswith(".")
    assert bug.mechanism.count(". ") == 0
    assert bug.source
    assert bug.exposed_by
    assert not bug.exposed_by.endswith(".")


@pytest.mark.parametrize("name", planted_bugs())
def test_a_bug_fits_changes_the_nodes_alone_and_compiles(name: str) -> None:
    finder = PatchedModules(patches_of([name], METADATA), ROOT)
    for module, source in finder.sources.items():
        assert module.startswith("splitbrain.nodes.")
        compile(source, module, "exec")


def test_no_two_bugs_share_a_sentence() -> None:
    sentences = [bug.mechanism for bug in planted_bugs().values()]
    assert len(set(sentences)) == len(sentences) == len(list(FOLDER.glob("*.patch")))


def test_every_class_has_bugs() -> None:
    kinds = [bug.kind for bug in planted_bugs().values()]
    assert len(kinds) >= 58
    assert all(kinds.count(kind) >= 3 for kind in ("outcome", "invariant", "liveness"))


def test_a_pair_goes_together_or_is_refused_whatever_the_order() -> None:
    refused = {pair for pair in itertools.permutations(planted_bugs(), 2) if not fit_together(pair)}
    assert all((other, one) in refused for one, other in refused)
    assert 0 < len(refused) < 40


@pytest.mark.parametrize(
    ("names", "says"),
    [
        (("no-such-bug",), "unknown bug 'no-such-bug'; known are "),
        (("unfenced-too-early",), "is one of the state machine metadata"),
        (("stale-answer-accepted", "correlation-restarts"), "cannot be planted together"),
    ],
)
def test_unfit_bugs_are_refused_for_nodes_and_for_worlds(names: tuple[str, ...], says: str) -> None:
    with pytest.raises(UsageError, match=says):
        check_options(Experiment(system="kraft", nodes=3, bugs=names))
    with pytest.raises(UsageError, match=says):
        KraftSimulation().planted(Scenario(system="kraft", seed=1, bugs=names))


@pytest.mark.parametrize("line", ["Kind: rare", "Mechanism: none", "Source"])
def test_a_header_with_other_lines_is_refused(line: str) -> None:
    with pytest.raises(msgspec.ValidationError):
        described(read_patch("a-bug", f"It errs.\n\nSource: x\nExposed by: y\n{line}\n\n{DIFF}"))


def test_a_world_has_a_copy_of_the_nodes_and_nobody_else_has_its_bug() -> None:
    plain = KraftSimulation()
    scenario = Scenario(system="kraft", seed=1)
    assert plain.planted(scenario) is plain
    with_bug = plain.planted(msgspec.structs.replace(scenario, bugs=("vote-not-persisted",)))
    assert type(with_bug) is not KraftSimulation
    assert sys.modules[durable_state.__name__] is durable_state
    again = plain.planted(msgspec.structs.replace(scenario, bugs=("vote-not-persisted",)))
    assert again is with_bug


@pytest.mark.planted("vote-not-persisted")
def test_a_process_that_has_the_bug_needs_no_copy() -> None:
    plain = KraftSimulation()
    assert plain.planted(Scenario(system="kraft", seed=1, bugs=("vote-not-persisted",))) is plain


@pytest.mark.slow
def test_patched_modules_are_well_typed(tmp_path: Path) -> None:
    for name in planted_bugs():
        sources = PatchedModules(patches_of([name], METADATA), ROOT).sources
        copies = {module: f"{name}.{module}".translate(UNDERLINES) for module in sources}
        for module, source in sources.items():
            text = source
            for other, copy in copies.items():
                text = text.replace(f"from {other} import", f"from {copy} import")
            (tmp_path / f"{copies[module]}.py").write_text(text)
    # Not strictly: a mistake may leave something that nobody uses.
    (tmp_path / "pyrightconfig.json").write_text(f'{{"extraPaths": ["{ROOT}"]}}')
    command = ("pyright", "--outputjson", "--project", tmp_path, "--pythonpath", sys.executable)
    done = subprocess.run([sys.executable, "-m", *command], check=False, capture_output=True)
    told = json.loads(done.stdout)
    errors = [each["message"] for each in told["generalDiagnostics"] if each["severity"] == "error"]
    # A class of a copied module is taken for another one than that of the module.
    assert [each for each in errors if '" is not assignable to "splitbrain.' not in each] == []
    assert told["summary"]["filesAnalyzed"] >= len(planted_bugs())
