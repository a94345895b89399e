"""Sweeps at the gate, from their folders and a lake: figures over seeds, and what hides."""

import datetime as dt
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from splitbrain.harness.campaign.gate.selection import select
from splitbrain.harness.cli.main import run as splitbrain
from splitbrain.spark_analysis.lake.store import LocalStore
from splitbrain.spark_analysis.lake.sweeps import ingest_sweeps
from tests.unit.harness.campaign.gate.gate_runs import VALID, policy, write_run
from tests.unit.harness.campaign.sweep.test_sweep import order, swept
from tests.unit.harness.campaign.sweep.tried_seeds import FOUND

#: Path of a sweep, as a gate is given it: its folder, or a lake that it was put into.
Given = Callable[[Path], str]


def _in_folder(sweep: Path) -> str:
    return str(sweep)


def _in_lake(sweep: Path) -> str:
    lake = sweep.parent / "lake"
    ingest_sweeps(LocalStore(lake), [sweep])
    return str(lake)


@pytest.fixture(params=[_in_folder, _in_lake])
def given(request: pytest.FixtureRequest) -> Given:
    return request.param


class Gate:
    """A sweep's folder, and a policy to hold it against."""

    def __init__(self, root: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.root, self.capsys = root, capsys
        self.sweep = root / "sweep"

    def swept(
        self, ways: dict[int, str] | None = None, count: int = 12, name: str = "sweep"
    ) -> Path:
        folder = self.root / name
        folder.mkdir(parents=True, exist_ok=True)
        swept(order(count, ways, keep=0, check_share=1.0, output=folder))
        return folder

    def hold(self, source: str, *thresholds: str, more: str = "") -> tuple[int, str]:
        policy(self.root, *(thresholds or ("seeds_run >= 12",)), more=more)
        code = splitbrain(["gate", "--policy", str(self.root / "gate.toml"), source])
        return code, self.capsys.readouterr().out


@pytest.fixture
def gate(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Gate:
    return Gate(tmp_path, capsys)


def test_enough_seeds_and_none_failed_is_green(gate: Gate, given: Given) -> None:
    source = given(gate.swept())
    code, said = gate.hold(source)
    assert code == 0
    said = " ".join(said.split())
    assert "seeds_run >= 12 Met: 12 (seeds: 12)." in said
    assert "seeds_failed == 0 Met: 0 (seeds: 12). (implied)" in said
    assert "12 of 12 seeds of kraft: 12 clean." in said
    assert "met by 12 seeds" in said
    # A sweep has no run in which a violation could be.
    assert "violations ==" not in said
    assert gate.hold(source, "seeds_run >= 13")[0] == 1


def test_seeds_of_other_worlds_are_none_that_were_not_run(gate: Gate, given: Given) -> None:
    source = given(gate.swept(dict.fromkeys(range(5), "skips")))
    code, said = gate.hold(source, "seeds_run >= 7", "seeds_not_run == 0")
    assert code == 0
    assert "7 of 7 seeds of kraft: 7 clean." in " ".join(said.split())


def test_a_failed_seed_is_red_with_its_line(gate: Gate, given: Given) -> None:
    code, said = gate.hold(given(gate.swept({3: "fails", 5: "fails"})), "seeds_run >= 12")
    assert code == 1
    assert "seeds_failed == 0 is violated: 2 (seeds: 12)." in said
    assert f"{FOUND.fingerprint}  invariants, INV-01 (2 runs, counts)" in said
    assert "splitbrain sim --seed 3 --made-by " in said


def test_shares_and_conditions_choose_seeds(gate: Gate, given: Given) -> None:
    source = given(gate.swept({3: "fails", 5: "fails", 6: "puzzles"}))
    met = (
        "seeds_failed <= 2",
        "seeds_failed_share < 17%",
        "seeds_failed{checker=set-full} == 0",
        "seeds_failed{fingerprint!=" + FOUND.fingerprint + "} == 0",
        "seeds_run{workload=register} == 12",
        "seeds_undecided == 1",
        "seeds_broken == 0",
        "seeds_not_run == 0",
    )
    assert gate.hold(source, *met)[0] == 0
    for threshold in (
        "seeds_failed_share < 16%",
        "seeds_failed{checker=invariants} == 0",
        "seeds_failed{fingerprint=" + FOUND.fingerprint + "} < 2",
        "seeds_undecided == 0",
    ):
        code, said = gate.hold(source, "seeds_failed <= 2", threshold)
        assert (code, f"{threshold} is violated" in said) == (1, True)
    code, said = gate.hold(source, "seeds_failed <= 2", "seeds_run{workload=set} >= 1")
    assert (code, "no such seed was run" in said) == (2, True)


@pytest.mark.parametrize("how", ["crashes", "changes"])
def test_a_seed_that_nobody_can_tell_proves_nothing(gate: Gate, given: Given, how: str) -> None:
    code, said = gate.hold(given(gate.swept({4: how})), "seeds_run >= 5")
    assert code == 2
    assert "1 seed could not be run, or came out differently again" in said
    assert gate.hold(given(gate.sweep), "seeds_broken == 0")[0] == 1


def test_a_quarantine_spares_the_seeds_of_one_failure(gate: Gate, given: Given) -> None:
    until = dt.datetime.now(dt.UTC).date() + dt.timedelta(days=3)
    more = f'[[quarantine]]\nfingerprint = "{FOUND.fingerprint}"\nuntil = {until}\nreason = "x"\n'
    code, said = gate.hold(given(gate.swept({3: "fails"})), more=more)
    assert code == 0
    assert "quarantined until" in said


def test_a_killed_sweep_counts_as_far_as_it_went(gate: Gate, given: Given) -> None:
    folder = gate.swept()
    (folder / "sweep.json").unlink()
    seeds = folder / "seeds.jsonl"
    lines = seeds.read_bytes().splitlines(keepends=True)
    seeds.write_bytes(b"".join(lines[:6]) + lines[6][:-9])
    code, said = gate.hold(given(folder), "seeds_run >= 5", "seeds_not_run <= 7")
    assert (code, "5 of 12 seeds of kraft: 5 clean." in said) == (0, True)
    assert gate.hold(given(folder), "seeds_not_run == 0")[0] == 1


def test_a_sweep_without_a_seed_never_passes(gate: Gate, given: Given) -> None:
    folder = gate.swept()
    (folder / "sweep.json").unlink()
    seeds = folder / "seeds.jsonl"
    seeds.write_bytes(seeds.read_bytes().splitlines(keepends=True)[0])
    for thresholds in (("seeds_failed == 0",), ("seeds_not_run <= 12",), ("runs == 0",)):
        code, said = gate.hold(given(folder), *thresholds)
        assert code == 2
        assert "UNKNOWN" in said


def _without(folder: Path, seed: int) -> None:
    seeds = folder / "seeds.jsonl"
    lines = seeds.read_bytes().splitlines(keepends=True)
    seeds.write_bytes(b"".join(each for each in lines if b'{"seed":%d,' % seed not in each))


def _made_clean(folder: Path, seed: int) -> None:
    seeds = folder / "seeds.jsonl"
    head, *lines = map(json.loads, seeds.read_text().splitlines())
    for line in lines:
        line["outcome"] = "clean" if line["seed"] == seed else line["outcome"]
    seeds.write_text("".join(f"{json.dumps(line)}\n" for line in (head, *lines)))


def _garbled(folder: Path, seed: int) -> None:
    seeds = folder / "seeds.jsonl"
    seeds.write_bytes(seeds.read_bytes().replace(b'{"seed":%d,' % seed, b'{"seed":x,'))


@pytest.mark.parametrize("spoil", [_without, _made_clean, _garbled])
def test_a_file_that_does_not_add_up_counts_for_nothing(
    gate: Gate, given: Given, spoil: Callable[[Path, int], None]
) -> None:
    folder = gate.swept({3: "fails"})
    spoil(folder, 3)
    code, said = gate.hold(given(folder), "seeds_failed == 0")
    assert code == 2
    assert "seeds.jsonl" in said


def test_a_sweep_of_before_is_told(gate: Gate) -> None:
    folder = gate.swept()
    (folder / "seeds.jsonl").unlink()
    code, said = gate.hold(str(folder), "seeds_failed == 0")
    assert code == 2
    assert "it has no seeds.jsonl: it is of an earlier version, or lost it" in said


def test_a_world_counts_once_however_often_it_was_run(gate: Gate) -> None:
    gate.swept(name="runs/a")
    gate.swept({3: "fails"}, name="runs/b", count=4)
    ingest_sweeps(LocalStore(gate.root / "lake"), [gate.root / "runs/a"])
    selection = select([str(gate.root / "runs"), str(gate.root / "lake")])
    assert [len(sweep.seeds) for sweep in selection.sweeps] == [12, 4]
    code, said = gate.hold(str(gate.root / "runs"), "seeds_run == 12", "seeds_failed == 1")
    assert (code, "Met: 12" in said) == (0, True)


def test_runs_and_sweeps_stand_side_by_side(gate: Gate) -> None:
    folder = gate.swept(name="all/sweep")
    write_run(folder.parent / "kraft" / "good", VALID, seed=1)
    code, said = gate.hold(str(folder.parent), "runs_valid >= 1", "seeds_run >= 12")
    assert code == 0
    assert "violations == 0 Met" in " ".join(said.split())
    assert "by 1 run and 12 seeds" in said
    assert gate.hold(str(folder), "runs_valid >= 1")[0] == 2


def test_a_failure_that_the_baseline_met_is_known(
    gate: Gate, capsys: pytest.CaptureFixture[str]
) -> None:
    before, now = gate.swept({3: "fails"}, name="before"), gate.swept({5: "fails"}, name="now")
    policy(gate.root, "seeds_failed <= 1", "regression(seeds_run) < 10%")
    words = ["gate", "--policy", str(gate.root / "gate.toml"), "--output", str(gate.root / "out")]
    assert splitbrain([*words, "--baseline", str(before), str(now)]) == 0
    assert "(1 run, known)" in capsys.readouterr().out
    # Its own JSON is the next baseline.
    record = json.loads((gate.root / "out" / "gate.json").read_bytes())
    assert record["sweeps"][0]["seeds"] == "0:12"
    assert record["figures"]["seeds_run"]["value"] == 12
    assert "seed 5" in (gate.root / "out" / "gate.xml").read_text()
    baseline = str(gate.root / "out" / "gate.json")
    assert splitbrain([*words, "--baseline", baseline, str(before)]) == 0
