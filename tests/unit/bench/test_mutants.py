import json
from pathlib import Path

import msgspec
import pytest

from bench import mutants
from bench.mutant_child import StageOrder, StageResult
from bench.mutant_draw import drawn, sources_of
from bench.mutant_ledger import Entry, Ledger, Score
from bench.mutant_rooms import ROOMS, files_of, state_machine_of
from bench.mutant_sites import Mutant
from bench.mutants import RunStage, explained, main, options_of, run_stage

VOTERS = "nodes/quorum/voters.py"
RULE = "nodes/quorum/epoch_limit.py"
#: A stage that takes a second.
ONE_TEST = ("tests/transcripts/test_transcripts.py",)


def runs(fates: dict[str, str], shown: list[tuple[str | None, str]] | None = None) -> RunStage:
    """Stages that let everything pass but what ``fates`` says of a stage."""

    def run(order: StageOrder) -> StageResult:
        stage = order.tests[0] if order.tests else "seeds"
        if shown is not None:
            shown.append((order.mutant.id if order.mutant else None, stage))
        killed_by = None if order.mutant is None else fates.get(stage)
        return StageResult(killed_by=killed_by, cpu_s=1.0, traces="the same")

    return run


def last_line(capsys: pytest.CaptureFixture[str]) -> dict[str, object]:
    return json.loads(capsys.readouterr().out.splitlines()[-1])


def entry(mutant: Mutant, stage: str, killed_by: str | None, extent: str = "") -> Entry:
    result = StageResult(killed_by=killed_by)
    return Entry(mutant=mutant, stage=stage, extent=extent, result=result)


def test_no_mutant_is_run_when_the_code_as_it_is_does_not_pass(
    capsys: pytest.CaptureFixture[str],
) -> None:
    shown: list[Mutant | None] = []

    def run(order: StageOrder) -> StageResult:
        shown.append(order.mutant)
        return StageResult(killed_by=None if order.tests else "seed 3: INV-05")

    assert main(["--count", "2"], run) == 1
    assert set(shown) == {None}
    assert last_line(capsys)["control"] == "seeds: seed 3: INV-05"


def test_a_mutant_is_shown_to_the_stages_until_one_notices(
    capsys: pytest.CaptureFixture[str],
) -> None:
    shown: list[tuple[str | None, str]] = []
    run = runs({"tests/unit/nodes/quorum": "test_x"}, shown)
    assert main(["--count", "1", "--files", RULE], run) == 0
    assert [stage for name, stage in shown if name] == [
        "tests/transcripts",
        "tests/unit/nodes/quorum",
    ]
    summary = last_line(capsys)
    assert (summary["mutants"], summary["killed"], summary["unexplained"]) == (1, 1, [])


def test_transcripts_of_the_quorum_are_not_asked_about_the_storage() -> None:
    shown: list[tuple[str | None, str]] = []
    command = ["--count", "1", "--files", "nodes/storage/segment.py"]
    assert main(command, runs({}, shown)) == 0
    assert [stage for name, stage in shown if name] == [
        "tests/unit/nodes/storage",
        "seeds",
        "tests/properties",
    ]


def test_every_stage_is_asked_where_each_one_s_score_is_wanted(
    capsys: pytest.CaptureFixture[str],
) -> None:
    run = runs({"tests/transcripts": "test_x", "seeds": "seed 1: INV-01"})
    assert main(["--count", "3", "--files", RULE, "--every-stage"], run) == 0
    stages = last_line(capsys)["stages"]
    assert stages == {
        "transcripts": {"shown": 3, "killed": 3, "first": 3},
        "unit": {"shown": 3, "killed": 0, "first": 0},
        "seeds": {"shown": 3, "killed": 3, "first": 0},
        "rest": {"shown": 0, "killed": 0, "first": 0},
    }


def test_survivors_are_told_with_place_and_change(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--count", "1", "--files", RULE], runs({})) == 0
    said = capsys.readouterr().out
    (mutant,) = drawn([RULE], 1)[:1]
    assert f"{mutant.id} {RULE}:{mutant.line} {mutant.scope}" in said
    assert f"- {mutant.before}" in said
    assert f"+ {mutant.after}" in said
    assert "SURVIVED (same traces)" in said
    assert json.loads(said.splitlines()[-1])["unexplained"] == [mutant.id]


def test_a_survivor_that_the_table_names_is_explained(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (mutant,) = drawn([RULE], 1)[:1]
    table = tmp_path / "mutants.md"
    table.write_text(f"| mutant | why |\n|---|---|\n| `{mutant.id}` | the same |\n")
    monkeypatch.setattr(mutants, "EXPLANATIONS", table)
    assert explained() == {mutant.id}
    assert main(["--count", "1", "--files", RULE], runs({})) == 0
    summary = last_line(capsys)
    assert (summary["explained"], summary["unexplained"]) == (1, [])


def test_a_campaign_goes_on_where_it_was_stopped(tmp_path: Path) -> None:
    ledger = str(tmp_path / "ledger.jsonl")
    command = ["--files", VOTERS, "--ledger", ledger]
    assert main([*command, "--count", "2"], runs({"seeds": "seed 0: INV-01"})) == 0
    shown: list[tuple[str | None, str]] = []
    assert main([*command, "--count", "3"], runs({}, shown)) == 0
    third = drawn([VOTERS], 1)[2].id
    assert {name for name, _ in shown if name} == {third}


def test_more_seeds_are_run_for_what_fewer_did_not_notice(tmp_path: Path) -> None:
    command = ["--files", VOTERS, "--ledger", str(tmp_path / "ledger.jsonl"), "--count", "1"]
    assert main([*command, "--seeds", "0:5"], runs({})) == 0
    shown: list[tuple[str | None, str]] = []
    assert main([*command, "--seeds", "0:50"], runs({}, shown)) == 0
    assert [stage for name, stage in shown if name] == ["seeds"]


def test_survivors_can_be_run_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["--files", VOTERS, "--ledger", str(tmp_path / "ledger.jsonl"), "--count", "2"]
    assert main(command, runs({})) == 0
    capsys.readouterr()
    assert main([*command, "--again", "survivors"], runs({"seeds": "seed 2: INV-02"})) == 0
    assert last_line(capsys)["killed"] == 2


def test_a_torn_last_line_of_a_ledger_is_dropped(tmp_path: Path) -> None:
    path = tmp_path / "ledger.jsonl"
    first, second = drawn([VOTERS], 1)[:2]
    ledger = Ledger(path)
    ledger.add(entry(first, "unit", "test_x"))
    ledger.add(entry(second, "unit", None))
    path.write_bytes(path.read_bytes()[:-9])
    assert [one.id for one in Ledger(path).mutants] == [first.id]


def test_a_campaign_that_was_interrupted_twice_goes_on(tmp_path: Path) -> None:
    """A line after the torn one used to be written behind it, as one line that nobody read."""
    path = tmp_path / "ledger.jsonl"
    asked = drawn([VOTERS], 1)[:3]
    Ledger(path).add(entry(asked[0], "unit", "test_x"))
    path.write_bytes(path.read_bytes()[:-9])
    for mutant in asked:
        Ledger(path).add(entry(mutant, "unit", None))
    assert [one.id for one in Ledger(path).mutants] == [one.id for one in asked]


def test_a_later_result_counts_instead_of_an_earlier_one() -> None:
    (mutant,) = drawn([VOTERS], 1)[:1]
    ledger = Ledger()
    ledger.add(entry(mutant, "unit", None))
    assert ledger.survivors() == (mutant,)
    ledger.add(entry(mutant, "unit", "test_x"))
    assert ledger.killed_by(mutant.id) == ("unit", "test_x")
    assert ledger.score(VOTERS).percent == 100.0


def test_results_of_another_text_of_the_file_count_no_more(tmp_path: Path) -> None:
    path = tmp_path / "ledger.jsonl"
    first, second = drawn([VOTERS], 1)[:2]
    ledger = Ledger(path)
    for mutant, text in ((first, "before"), (second, "now")):
        noted = entry(mutant, "seeds", "seed 0: INV-01")
        ledger.add(msgspec.structs.replace(noted, source=text))
    assert Ledger(path, {VOTERS: "now"}).mutants == (second,)
    assert Ledger(path, {RULE: "now"}).mutants == ()
    assert Ledger(path).mutants == (first, second)


def test_a_ledger_says_of_which_text_its_results_are(tmp_path: Path) -> None:
    path = tmp_path / "ledger.jsonl"
    assert main(["--files", RULE, "--ledger", str(path), "--count", "1"], runs({})) == 0
    assert {each["source"] for each in map(json.loads, path.read_text().splitlines())} == {
        sources_of([RULE])[RULE]
    }


def test_nothing_is_drawn_late(capsys: pytest.CaptureFixture[str]) -> None:
    shown: list[tuple[str | None, str]] = []
    assert main(["--count", "2", "--time-limit", "0s"], runs({}, shown)) == 0
    assert {name for name, _ in shown} == {None}
    assert last_line(capsys)["left"] == 2


def test_a_draw_is_the_same_for_the_same_seed_only() -> None:
    assert drawn([VOTERS], 1) == drawn([VOTERS], 1)
    assert drawn([VOTERS], 1) != drawn([VOTERS], 2)


def test_mutants_of_one_file_leave_those_of_another_in_their_order() -> None:
    among_others = [mutant for mutant in drawn([RULE, VOTERS], 1) if mutant.file == VOTERS]
    assert among_others == drawn([VOTERS], 1)


def test_quorum_and_storage_are_mutated_but_for_the_disk() -> None:
    files = files_of("quorum")
    assert {"nodes/quorum/leader.py", "nodes/storage/flushing.py"} <= set(files)
    assert not [file for file in files if file.endswith(("disk.py", "__init__.py"))]


def test_what_stands_above_the_log_is_judged_by_worlds_of_its_own_alone(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    # None of those that are drawn here is explained, whatever the campaign has come to.
    monkeypatch.setattr(mutants, "EXPLANATIONS", tmp_path / "nothing.md")
    shown: list[tuple[str | None, str]] = []

    def run(order: StageOrder) -> StageResult:
        assert not order.tests
        shown.append((order.mutant.file if order.mutant else None, order.state_machine))
        return StageResult(killed_by=None, cpu_s=1.0, traces=order.state_machine)

    files = ["nodes/controller/brokers/fencing.py", "nodes/registers/machine.py"]
    assert main(["--count", "12", "--files", *files], run) == 0
    assert shown[:2] == [(None, "metadata"), (None, "registers")]
    assert set(shown[2:]) == {(files[0], "metadata"), (files[1], "registers")}
    assert capsys.readouterr().out.count("SURVIVED (same traces)") == 2 * 12


def test_rooms_share_no_file_and_each_file_has_its_worlds() -> None:
    quorum, above = (files_of(room) for room in ROOMS)
    assert not set(quorum) & set(above)
    assert {state_machine_of(file) for file in quorum} == {"registers"}
    controller = "nodes/controller/partitions/isr_changes.py"
    assert controller in above
    assert state_machine_of(controller) == "metadata"


def test_a_share_of_few_says_little() -> None:
    assert Score(mutants=10, killed=5).interval == (23.7, 76.3)
    assert Score(mutants=1_000, killed=500).interval == (46.9, 53.1)
    assert Score(mutants=0, killed=0).interval == (0.0, 100.0)


@pytest.mark.parametrize(
    "arguments",
    [["--files", "nodes/quorum/none.py"], ["--time-limit", "30"], ["--stages", "luck"]],
)
def test_a_wrong_command_line_is_refused(arguments: list[str]) -> None:
    with pytest.raises(SystemExit):
        options_of(arguments)


# Two runs of the tests that judge; what comes between is tested above.
@pytest.mark.nightly
def test_a_real_process_passes_the_code_as_it_is_and_kills_a_mutant() -> None:
    role = "nodes/quorum/role.py"
    control = StageOrder(mutant=None, files=(role,), tests=ONE_TEST, cpu_s_max=100)
    assert run_stage(control).killed_by is None
    votes = [mutant for mutant in drawn([role], 1) if mutant.scope == "Role.may_grant"]
    mutant = next(mutant for mutant in votes if mutant.after == "return True")
    result = run_stage(msgspec.structs.replace(control, mutant=mutant))
    assert result.killed_by is not None
    assert result.killed_by.startswith("tests/transcripts/test_transcripts.py::")


def test_a_file_that_has_changed_meanwhile_stops_the_campaign() -> None:
    mutant = Mutant(
        id="00000000", file=RULE, line=1, scope="", operator="", before="", after="", number=0
    )
    order = StageOrder(mutant=mutant, files=(RULE,), tests=ONE_TEST, cpu_s_max=100)
    with pytest.raises(RuntimeError, match="has changed since"):
        run_stage(order)
