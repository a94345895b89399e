"""The terminal table, summary.md and junit.xml say the verdict plainly and cannot be hijacked."""

import io
from xml.etree import ElementTree as ET

import msgspec
import pytest
from rich.console import Console

from splitbrain.checker.verdict import CheckResult, Verdict
from splitbrain.harness.cli.main import run
from splitbrain.harness.console.plain_text import markdown, printable, value_text
from splitbrain.harness.folder.results import FaultResult, OutcomeCounts, Results
from splitbrain.harness.report.junit import to_junit
from splitbrain.harness.report.summary import render, to_markdown
from tests.unit.harness.small_results import results_with

REPRODUCE = (
    "splitbrain test --system kraft --workload register --nemesis partition,pause,kill --seed 7"
)
STALE = CheckResult(
    "linearizability:cas-register",
    Verdict.INVALID,
    "Key r3 cannot be ordered: process 12 read 41 on n1 after 42 was acknowledged.",
    violations=({"kind": "not-linearizable", "sentence": "read → 41 has no place"},),
)
VALID = CheckResult("split-brain", Verdict.VALID, "No epoch had two leaders.")


def results(**changes: object) -> Results:
    invalid: dict[str, object] = {
        "verdict": Verdict.INVALID,
        "exit_code": 1,
        "checkers": (STALE, VALID),
        "operations": {"read": OutcomeCounts(4000, 12, 0), "write": OutcomeCounts(900, 1, 22)},
        "faults": (
            FaultResult(0, "partition", "leader", ("n1",), "n1", 5000, 5200, 10000, 10400, True,
                        "4 links cut after 212 ms", True, True),
            FaultResult(1, "kill", "all", at_ms=15000, evidence="no leader for 5 s"),
        ),
        "elections": 5,
        "epochs": (1, 2, 6),
        "longest_unavailability_ms": 4321,
        "run_folder": "runs/kraft-register/20261121T020000Z-7",
        "reproduce": REPRODUCE,
    }  # fmt: skip
    return results_with(**(invalid | changes))


def shown(given: Results, width: int = 80) -> str:
    output = io.StringIO()
    render(given, Console(file=output, width=width))
    return output.getvalue()


def test_the_verdict_and_its_reason_stand_last() -> None:
    last = shown(results()).split("\n\n")[-1].strip()
    assert last.startswith("INVALID  Not linearizable. Key r3 cannot be ordered")


def test_everything_that_the_table_promises_is_there() -> None:
    text = shown(results(problems=("Spark failed.",), vacuous=("Nothing bit.",)))
    for promised in (
        "4,000",
        "partition:leader",
        "4 links cut",
        "n1*",
        "5 (epochs 1-6)",
        "4,321 ms",
        "split-brain",
        "runs/kraft-register/20261121T020000Z-7",
        REPRODUCE,
        "Spark failed.",
        "Nothing bit.",
    ):
        assert promised in text


@pytest.mark.parametrize("width", [80, 100])
def test_no_line_but_those_to_be_copied_is_wider_than_the_terminal(width: int) -> None:
    long = [line for line in shown(results(), width).split("\n") if len(line.rstrip()) > width]
    assert [line.split()[0] for line in long] in ([], ["Reproduce"])


def found(checker: str, *kinds: str) -> CheckResult:
    violations = tuple({"kind": kind, "sentence": "It is wrong."} for kind in kinds)
    return CheckResult(checker, Verdict.INVALID, "It is wrong.", violations=violations)


@pytest.mark.parametrize(
    ("checkers", "names"),
    [
        ([VALID], []),
        ([STALE, VALID], ["not-linearizable"]),
        ([found("invariants", "INV-10")], ["INV-10"]),
        ([found("set-full", "stale", "lost"), found("queue-totals", "lost")],
         ["stale-read", "lost-write"]),
        # The same thing of two checkers is explained once.
        ([found("set-full", "lost"), found("lost-commits", "lost")], ["lost-write"]),
        # A kind without words of its own: those of its checker.
        ([found("node-health", "node-exited")], ["node-health"]),
        # Of a package that is not installed here.
        ([found("few", "many")], []),
    ],
)  # fmt: skip
def test_the_end_names_the_commands_that_explain_what_was_violated(
    checkers: list[CheckResult], names: list[str]
) -> None:
    given = results(checkers=tuple(checkers))
    commands = [f"splitbrain explain {name}" for name in names]
    lines = shown(given).splitlines()
    assert [line for line in lines if line.startswith("Explain")] == [
        f"Explain     {command}" for command in commands
    ]
    told = [line for line in to_markdown(given).splitlines() if line.startswith("- Explain")]
    assert told == [f"- Explain: `{command}`" for command in commands]
    for command in commands:
        assert run(command.split()[1:]) == 0


def test_a_copied_line_is_never_broken() -> None:
    assert f"Reproduce   {REPRODUCE}\n" in shown(results(), 60)


@pytest.mark.parametrize(
    ("changes", "headline"),
    [
        ({"verdict": Verdict.VALID, "checkers": (VALID,)}, "VALID"),
        ({"verdict": Verdict.VALID, "checkers": (VALID,), "vacuous": ("No.",)}, "VACUOUS"),
        ({"verdict": Verdict.UNKNOWN, "checkers": ()}, "UNKNOWN"),
        ({"verdict": Verdict.VALID, "harness_failed": True, "problems": ("X.",)}, "HARNESS FAILED"),
        ({"harness_failed": True, "vacuous": ("No.",)}, "INVALID"),
    ],
)
def test_the_worst_is_said_first(changes: dict[str, object], headline: str) -> None:
    given = results(**changes)
    assert given.headline == headline
    assert shown(given).split("\n\n")[-1].strip().startswith(headline)
    assert to_markdown(given).startswith(f"# {headline}: ")


def test_escape_sequences_and_markup_are_shown_and_do_not_act() -> None:
    evil = msgspec.structs.replace(STALE, reason="\x1b[2J[red]gone[/red]\r\n<b>|`x`")
    text = shown(results(checkers=(evil,)))
    assert "\x1b" not in text
    assert "[red]gone[/red]" in text
    table = to_markdown(results(checkers=(evil,)))
    assert "<b>" not in table.replace("\\<b\\>", "")
    assert "\x1b" not in table


def test_the_mark_of_a_leader_is_explained_below_the_faults() -> None:
    given = results()
    note = "* led when the fault came"
    lines = to_markdown(given).split("\n")
    last_row = next(place for place, line in enumerate(lines) if line.startswith("| 1 |"))
    assert lines[last_row + 1 : last_row + 3] == ["", f"\\{note}"]
    printed = [line.strip() for line in shown(given, 100).split("\n")]
    assert printed[printed.index(note) - 1].endswith("no leader for 5 s")
    spared = msgspec.structs.replace(given.faults[0], leader="n2")
    for text in (shown, to_markdown):
        assert note not in text(results(faults=(spared,)))


def test_many_faults_are_counted_and_not_all_shown() -> None:
    faults = tuple(FaultResult(n, "kill", "leader", at_ms=n, applied=True) for n in range(90))
    text = shown(results(faults=faults))
    assert "and 50 more: see report.html" in text


def test_junit_tells_failures_from_errors_and_hides_nothing() -> None:
    unknown = CheckResult("lost-commits", Verdict.UNKNOWN, "No logs.")
    suite = ET.fromstring(
        to_junit(results(checkers=(STALE, VALID, unknown), vacuous=("None bit.",)))
    )
    assert (suite.attrib["tests"], suite.attrib["failures"], suite.attrib["errors"]) == (
        "5",
        "2",
        "1",
    )
    by_name = {case.attrib["name"]: case for case in suite.findall("testcase")}
    failure = by_name["linearizability:cas-register"].find("failure")
    assert failure is not None
    assert REPRODUCE in (failure.text or "")
    assert by_name["lost-commits"].find("error") is not None
    assert by_name["vacuity"].find("failure") is not None
    assert list(by_name["split-brain"]) == []
    assert not suite.findall(".//skipped")


def test_junit_holds_text_that_xml_cannot() -> None:
    evil = msgspec.structs.replace(STALE, reason="\x00\x1b<&\ud800￾")
    suite = ET.fromstring(to_junit(results(checkers=(evil,))))
    failure = suite.find(".//failure")
    assert failure is not None
    assert "\\x00\\x1b<&" in failure.attrib["message"]


def test_results_survive_a_round_trip() -> None:
    given = results()
    read = msgspec.json.decode(msgspec.json.encode(given), type=Results)
    assert msgspec.json.encode(read) == msgspec.json.encode(given)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1234567, "1,234,567"),
        (0.5, "0.5"),
        (True, "true"),
        (None, "null"),
        ([1, 2], "[1, 2]"),
        (["a", "b"], "a, b"),
    ],
)
def test_values_in_short(value: object, text: str) -> None:
    assert value_text(value) == text


def test_long_values_are_cut_and_odd_ones_escaped() -> None:
    assert len(value_text("x" * 500)) == 60
    assert printable("a\u2028\x07é") == "a\\u2028\\x07é"
    assert markdown("a|b") == "a\\|b"
