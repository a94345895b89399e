"""The campaign within the promise: what it draws, what its ledger keeps, and what follows."""

import argparse
from pathlib import Path

import msgspec
import pytest

from bench.alarm_ledger import (
    Explained,
    FaultLine,
    Line,
    RunLine,
    append_line,
    read_lines,
    summary_lines,
    summed,
)
from bench.false_alarms import Campaign, kinds_of, mix_of, tried_kinds
from splitbrain.nemesis.kinds import fault_kind, machine_kind_names
from splitbrain.nemesis.plan_file import parse_plan_file

VALID = RunLine(
    number=1,
    seed=7,
    arguments=("--seed", "7"),
    commit="c",
    verdict="valid",
    reason="",
    violated=(),
    faults=(
        FaultLine("kill", "leader", applied=True, bit=True, healed=True),
        FaultLine("flip", "all", applied=False, bit=False, healed=False, evidence="too many"),
    ),
    took_s=30.0,
    run_folder=None,
    reproduce="splitbrain test --seed 7",
)
SECONDS = (15, 20)
ALARM = msgspec.structs.replace(
    VALID, number=2, verdict="invalid", reason="A read went back.", violated=("linearizability",)
)


def test_every_few_runs_have_had_every_kind_but_those_that_nobody_survives() -> None:
    left_out = set(machine_kind_names()) - set(tried_kinds())
    assert {fault_kind(kind).rule for kind in left_out} == {"lies"}
    each = -(-len(tried_kinds()) // 3)
    for block in range(3):
        numbers = range(block * each, (block + 1) * each)
        drawn = [kind for number in numbers for kind in kinds_of(number, tried_kinds())]
        assert sorted(drawn) == sorted(tried_kinds())


def test_a_run_follows_from_its_number_and_has_the_nodes_that_its_faults_need() -> None:
    assert mix_of(5, SECONDS) == mix_of(5, SECONDS)
    assert mix_of(5, SECONDS) != mix_of(6, SECONDS)
    for number in range(60):
        mix = mix_of(number, SECONDS)
        options = dict(zip(mix.options[::2], mix.options[1::2], strict=True))
        kinds = mix.faults.split(",")
        assert int(options["--nodes"]) >= max(fault_kind(kind).nodes_min for kind in kinds)
        assert int(options["--nodes"]) % 2 == 1


def test_faults_overlap_in_a_third_of_the_runs_by_a_plan_that_stays(tmp_path: Path) -> None:
    overlaps = [mix_of(number, SECONDS).overlap for number in range(300)]
    assert 80 <= overlaps.count(2) <= 120
    assert set(overlaps) == {1, 2}
    number = overlaps.index(2)
    mix = mix_of(number, SECONDS)
    options = argparse.Namespace(ledger=tmp_path / "ledger.jsonl", time_budget=1.0)
    campaign = Campaign(options)
    file = Path(campaign._nemesis(number, mix))
    plan = parse_plan_file(file.read_bytes(), file.name).plan
    assert (plan.nemesis, plan.pace.overlap) == (mix.faults, 2)
    alone = msgspec.structs.replace(mix, overlap=1)
    assert campaign._nemesis(number, alone) == mix.faults


def test_the_ledger_gives_back_what_it_took_and_leaves_out_a_torn_line(tmp_path: Path) -> None:
    path = tmp_path / "new" / "ledger.jsonl"
    append_line(path, VALID)
    append_line(path, Explained(2, is_false_alarm=False, words="a defect"))
    with path.open("ab") as file:
        file.write(b'{"line":"run","num')
    assert read_lines(path) == [VALID, Explained(2, is_false_alarm=False, words="a defect")]
    append_line(path, ALARM)
    assert read_lines(path)[2:] == [ALARM]
    assert len(read_lines(path)) == 3


def test_a_broken_line_amid_the_ledger_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "ledger.jsonl"
    path.write_bytes(b"{}\n" + msgspec.json.encode(VALID) + b"\n")
    with pytest.raises(msgspec.DecodeError):
        read_lines(path)


def test_no_alarm_in_n_runs_bounds_the_rate_by_three_in_n() -> None:
    lines: list[Line] = [msgspec.structs.replace(VALID, number=n) for n in range(1, 151)]
    lines.append(msgspec.structs.replace(VALID, number=151, verdict="vacuous"))
    total = summed(lines, ["kill", "wipe"])
    assert (total.runs, total.judged, total.rate_max) == (151, 150, 0.02)
    assert "fewer than 2.0 %" in "\n".join(summary_lines(total, lines))


def test_an_alarm_counts_as_false_until_it_is_explained_as_a_defect() -> None:
    lines: list[Line] = [VALID, ALARM]
    assert (summed(lines, ()).false_alarms, summed(lines, ()).rate_max) == ([2], None)
    text = "\n".join(summary_lines(summed(lines, ()), lines))
    assert "run 2, seed 7: invalid: A read went back." in text
    assert "splitbrain test --seed 7" in text
    defect: list[Line] = [*lines, Explained(2, is_false_alarm=False, words="a defect of ours")]
    assert summed(defect, ()).alarms == [2]
    assert summed(defect, ()).false_alarms == []
    assert "a defect of ours" in "\n".join(summary_lines(summed(defect, ()), defect))
    ours: list[Line] = [*lines, Explained(2, is_false_alarm=True, words="mended")]
    assert summed(ours, ()).false_alarms == [2]


def test_each_kind_says_how_often_it_bit_and_healed_and_why_not() -> None:
    total = summed([VALID], ["kill", "flip", "wipe"])
    assert msgspec.structs.astuple(total.kinds["kill"]) == (1, 1, 1, 1)
    assert msgspec.structs.astuple(total.kinds["flip"]) == (1, 0, 0, 0)
    # An untried kind is visible.
    assert msgspec.structs.astuple(total.kinds["wipe"]) == (0, 0, 0, 0)
    assert total.misses == {"flip: too many": 1}


def test_of_a_run_with_two_lines_the_last_line_counts() -> None:
    total = summed([ALARM, msgspec.structs.replace(ALARM, verdict="valid")], ())
    assert (total.runs, total.alarms) == (1, [])


class Numbers(Campaign):
    """Runs that are over at once."""

    def _run(self, number: int) -> RunLine | None:
        return None if number == self.interrupted else msgspec.structs.replace(VALID, number=number)

    interrupted = 0


def campaign(ledger: Path, **options: object) -> Numbers:
    given: dict[str, object] = {
        "ledger": ledger, "runs": 4, "jobs": 2, "time_budget": 60.0, "again": None
    }  # fmt: skip
    return Numbers(argparse.Namespace(**(given | options)))


def numbers(ledger: Path) -> list[int]:
    return sorted(line.number for line in read_lines(ledger))


def test_a_campaign_goes_on_where_its_ledger_ends(tmp_path: Path) -> None:
    ledger = tmp_path / "ledger.jsonl"
    append_line(ledger, ALARM)
    first = campaign(ledger)
    first.interrupted = 3
    first.go_on()
    # A run that somebody ended early is no evidence of anything.
    assert numbers(ledger) == [1, 2, 4]
    campaign(ledger).go_on()
    assert numbers(ledger) == [1, 2, 3, 4]
    campaign(ledger, again="2").go_on()
    assert summed(read_lines(ledger), ()).verdicts["invalid"] == 0


def test_no_run_begins_when_the_time_is_up(tmp_path: Path) -> None:
    ledger = tmp_path / "ledger.jsonl"
    campaign(ledger, time_budget=-1.0).go_on()
    assert numbers(ledger) == []
