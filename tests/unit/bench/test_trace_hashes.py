import argparse
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self

import msgspec
import pytest

from bench import trace_hashes
from bench.trace_hashes import differences, evidence, main, read_baseline, run, seeds_of
from bench.trace_projection import projection
from bench.trace_worlds import METADATA, guard_worlds, swarm_world
from splitbrain.harness.campaign.sweep.options import SimOptions
from splitbrain.harness.campaign.sweep.trial import draw
from splitbrain.harness.folder.simulation_outcome import SimulationOutcome

#: A seed whose faults strike and heal, with five clients.
SEED = 4
#: A quick world of the guard.
ONE = "plan/registers/kill/1"


@pytest.fixture(scope="module")
def outcome() -> SimulationOutcome:
    return run(swarm_world(SEED))


@pytest.mark.parametrize("bugs", [(), ("ack-before-fsync",)])
@pytest.mark.parametrize("state_machine", ["registers", METADATA])
def test_the_worlds_are_those_of_a_sweep(bugs: tuple[str, ...], state_machine: str) -> None:
    trial = SimOptions(
        system="kraft",
        bugs=bugs,
        state_machine=None if state_machine == "registers" else state_machine,
    )
    for seed in range(3):
        assert swarm_world(seed, bugs, state_machine) == draw(seed, trial)


def test_a_line_a_seed_and_one_object_at_the_end(
    capsys: pytest.CaptureFixture[str], outcome: SimulationOutcome
) -> None:
    assert main(["--seeds", "4:6"]) == 0
    first, second, last = capsys.readouterr().out.splitlines()
    assert first == f"4 {outcome.trace_hash} {projection(outcome)}"
    assert second.startswith("5 ")
    assert json.loads(last)["seeds"] == "4:6"


def test_recording_adds_nothing_but_the_story(outcome: SimulationOutcome) -> None:
    recorded = run(swarm_world(SEED), is_recording=True)
    assert recorded.story
    assert evidence(outcome) == evidence(recorded)


@pytest.mark.parametrize("text", ["", "5", "5:", ":5", "a:b", "5:5", "6:5", "-1:5"])
def test_what_is_no_range_of_seeds_is_refused(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match="no range of seeds"):
        seeds_of(text)


# --- the projection ----------------------------------------------------------------------------


def replaced(outcome: SimulationOutcome, field: str, place: int, **changes: Any) -> Any:
    items = list(getattr(outcome, field))
    items[place] = msgspec.structs.replace(items[place], **changes)
    return msgspec.structs.replace(outcome, **{field: tuple(items)})


RENAMES: dict[str, Callable[[SimulationOutcome], SimulationOutcome]] = {
    "kind": lambda outcome: replaced(outcome, "faults", 0, kind="another-name"),
    "target": lambda outcome: replaced(outcome, "faults", 0, target="another-name"),
    "evidence": lambda outcome: replaced(outcome, "faults", 0, evidence="said otherwise"),
    "scenario": lambda outcome: msgspec.structs.replace(
        outcome, scenario=msgspec.structs.replace(outcome.scenario, faults=())
    ),
    "order of nodes": lambda outcome: msgspec.structs.replace(
        outcome, state_events=dict(reversed(outcome.state_events.items()))
    ),
}
CHANGES: dict[str, Callable[[SimulationOutcome], SimulationOutcome]] = {
    "moment of a fault": lambda outcome: replaced(outcome, "faults", 0, time=1),
    "phase of a fault": lambda outcome: replaced(outcome, "faults", 0, phase="not-bitten"),
    "nodes of a fault": lambda outcome: replaced(outcome, "faults", 0, nodes=("n9",)),
    "time of an operation": lambda outcome: replaced(outcome, "events", 7, time=1),
    "process": lambda outcome: replaced(outcome, "events", 7, process=77),
    "outcome": lambda outcome: replaced(outcome, "events", -1, type="info"),
    "value": lambda outcome: replaced(outcome, "events", 7, value="another"),
    "who answered": lambda outcome: replaced(outcome, "events", 7, node="n9"),
    "the last operation": lambda outcome: msgspec.structs.replace(
        outcome, events=outcome.events[:-1]
    ),
    "phase of the run": lambda outcome: replaced(outcome, "phases", 0, time=1),
    "a node's event": lambda outcome: msgspec.structs.replace(
        outcome, state_events={**outcome.state_events, "n1": ()}
    ),
    "a node's log": lambda outcome: msgspec.structs.replace(outcome, committed_logs={}),
}


@pytest.mark.parametrize("name", RENAMES)
def test_a_rename_does_not_move_the_projection(outcome: SimulationOutcome, name: str) -> None:
    changed = RENAMES[name](outcome)
    assert changed != outcome or name == "order of nodes"
    assert projection(changed) == projection(outcome)


@pytest.mark.parametrize("name", CHANGES)
def test_what_happened_otherwise_moves_the_projection(
    outcome: SimulationOutcome, name: str
) -> None:
    assert projection(CHANGES[name](outcome)) != projection(outcome)


def test_what_ended_a_run_is_in_its_projection() -> None:
    found = run(swarm_world(3, ("ack-before-commit",)))
    assert found.violation is not None
    for changed in (
        None,
        msgspec.structs.replace(found.violation, invariant="INV-99"),
        msgspec.structs.replace(found.violation, time_us=1),
    ):
        other = msgspec.structs.replace(found, violation=changed)
        assert projection(other) != projection(found)


# --- the guard ---------------------------------------------------------------------------------


def test_the_guard_has_sweeps_plans_and_bugs_under_names_of_their_own() -> None:
    names = [name for name, _ in guard_worlds()]
    assert len(set(names)) == len(names)
    assert {name.split("/")[0] for name in names} == {"registers", "metadata", "plan", "bug"}
    from splitbrain.nemesis.kinds import kind_names
    from splitbrain.systems.kraft.planted_bugs import planted_bugs

    planned = {name.split("/")[2] for name in names if name.startswith("plan/")}
    assert {kind for kind in kind_names() if kind in planned} == {
        kind.removesuffix("@commits") for kind in planned
    }
    assert set(planted_bugs()) == {name.split("/")[2] for name in names if name.startswith("bug/")}


def test_the_guard_prints_what_it_later_compares(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trace_hashes, "_pool", InThisProcess)
    assert main(["--guard", "--only", ONE]) == 0
    lines = capsys.readouterr().out
    baseline = tmp_path / "worlds.txt"
    baseline.write_text(lines + "metadata/1 aa bb\n")
    # Worlds that were not asked for are not missing.
    assert main(["--guard", "--only", ONE, "--against", str(baseline)]) == 0
    assert "1 of 1 worlds are equal" in capsys.readouterr().err
    name, trace_hash, told = lines.splitlines()[0].split()
    baseline.write_text(lines.replace(trace_hash, "00").replace(told, "11"))
    assert main(["--guard", "--only", ONE, "--against", str(baseline)]) == 1
    assert f"{name} has another projection" in capsys.readouterr().err


class InThisProcess:
    """A pool without processes: worlds are small here, and a process takes a second to start."""

    def __init__(self, _jobs: int, **_: object) -> None: ...

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None: ...

    def map(self, function: Callable[[Any], Any], items: Any) -> Any:
        return map(function, items)


def test_each_difference_is_named() -> None:
    before = {"a": ("1", "2"), "b": ("1", "2"), "c": ("1", "2"), "d": ("1", "2")}
    after = {"a": ("1", "2"), "b": ("9", "2"), "c": ("9", "9"), "e": ("1", "2")}
    assert list(differences(before, after)) == [
        ("b", "has another hash, and the same projection"),
        ("c", "has another projection"),
        ("d", "is missing"),
        ("e", "is new"),
    ]


def test_a_file_that_is_no_baseline_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "worlds.txt"
    path.write_text("registers/0 aa bb\nregisters/1 aa\n")
    with pytest.raises(argparse.ArgumentTypeError, match=r"worlds\.txt:2 is not"):
        read_baseline(path)
    with pytest.raises(SystemExit):
        main(["--guard", "--against", str(tmp_path / "missing")])
    assert "cannot be read" in capsys.readouterr().err
