"""Every invariant of controllers and brokers sees mistakes in three places, each by itself.

All others are muted, so that none sees it first. By night: it takes a world or two for most, and
tens for some.
"""

import difflib
import tomllib
from pathlib import Path
from typing import Any

import pytest

from splitbrain.contracts.names import DEFAULT_SYSTEM
from splitbrain.harness.campaign.sweep.options import SimOptions
from splitbrain.harness.campaign.sweep.trial import draw
from splitbrain.harness.run.world.recovery import LIVENESS
from splitbrain.harness.run.world.simulate import simulate
from splitbrain.patched.patch import read_patch
from splitbrain.simulation.kraft.all_invariants import INVARIANTS
from splitbrain.simulation.kraft.system import KraftSimulation
from splitbrain.systems.kraft import planted_bugs
from splitbrain.systems.kraft.planted_bugs import PlantedBug

ROOT = Path(__file__).parents[2]
MUTANTS: dict[str, list[dict[str, str]]] = tomllib.loads(
    Path(__file__).with_name("control_plane_mutants.toml").read_text()
)
CASES = [
    pytest.param(invariant, number, id=f"{invariant}-{number}")
    for invariant, mutants in MUTANTS.items()
    for number in range(len(mutants))
]
#: Equal states, which all nodes have, and those of controllers, brokers and partitions.
MINE = {"INV-18", *(f"INV-{number}" for number in (45, 46, *range(49, 67)))}
SEEDS_MAX = 60


def diff_of(mutant: dict[str, str]) -> str:
    source = (ROOT / mutant["file"]).read_text()
    assert source.count(mutant["old"]) == 1, mutant
    lines = source.splitlines(keepends=True)
    changed = source.replace(mutant["old"], mutant["new"]).splitlines(keepends=True)
    return "".join(
        difflib.unified_diff(lines, changed, f"a/{mutant['file']}", f"b/{mutant['file']}")
    )


def plant(monkeypatch: pytest.MonkeyPatch, name: str, diff: str) -> None:
    """Let a diff be one of the planted bugs."""
    patches = {**planted_bugs._patches(), name: read_patch(name, diff)}
    bug = PlantedBug(
        name=name,
        mechanism="a mutant",
        source="splitbrain",
        exposed_by="",
        kind="invariant",
        state_machine="metadata",
    )
    bugs: dict[str, Any] = {**planted_bugs.planted_bugs(), name: bug}
    monkeypatch.setattr(planted_bugs, "_patches", lambda: patches)
    monkeypatch.setattr(planted_bugs, "planted_bugs", lambda: bugs)


def test_every_invariant_has_three_mutants_that_fit_the_source() -> None:
    assert set(MUTANTS) == MINE
    assert all(len(mutants) >= 3 for mutants in MUTANTS.values())
    for mutants in MUTANTS.values():
        assert all(diff_of(mutant) for mutant in mutants)


@pytest.mark.nightly
@pytest.mark.parametrize(("invariant", "number"), CASES)
def test_the_invariant_sees_its_mutant(
    invariant: str, number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = f"{invariant.lower()}-{number}"
    plant(monkeypatch, name, diff_of(MUTANTS[invariant][number]))
    trial = SimOptions(system=DEFAULT_SYSTEM, bugs=(name,), state_machine="metadata")

    muted = frozenset({*(kind.id for kind in INVARIANTS), *LIVENESS}) - {invariant}
    for seed in range(SEEDS_MAX):
        violation = simulate(draw(seed, trial), KraftSimulation(), muted=muted).violation
        if violation is not None and violation.invariant == invariant:
            return
    pytest.fail(f"no seed below {SEEDS_MAX} shows it")
