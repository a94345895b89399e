"""Outputs of the gate: JUnit that servers accept, Markdown that fits, JSON that comes back."""

import datetime as dt
from pathlib import Path
from xml.etree import ElementTree as ET

import msgspec
import pytest

from splitbrain.checker.fingerprints import fingerprint_of
from splitbrain.harness.campaign.gate.gating import GateRequest, Held, hold_gate
from splitbrain.harness.campaign.gate.junit import to_junit
from splitbrain.harness.campaign.gate.markdown import to_markdown
from splitbrain.harness.campaign.gate.record import GateRecord, decode_record, encode_record
from splitbrain.harness.folder.results import read as read_results
from tests.synthetic_runs import HOSTILE
from tests.unit.harness.campaign.gate.gate_runs import (
    UNDECIDED,
    VALID,
    policy,
    stale_read,
    write_run,
)

NOW = dt.datetime(2026, 11, 21, tzinfo=dt.UTC)
_SPARED = fingerprint_of(stale_read(1, "spared-kind"))
assert _SPARED is not None
SPARED = _SPARED.text

#: The elements of xunit2 (``junit-10.xsd``): attributes, required ones, and children.
ELEMENTS: dict[str, tuple[set[str], set[str], set[str]]] = {
    "testsuites": ({"name", "time", "tests", "failures", "errors"}, set(), {"testsuite"}),
    "testsuite": (
        {"name", "tests", "failures", "errors", "group", "time", "skipped", "timestamp"}
        | {"hostname", "id", "package", "file", "log", "url", "version"},
        {"name", "tests", "failures", "errors"},
        {"testsuite", "properties", "testcase", "system-out", "system-err"},
    ),
    "properties": (set(), set(), {"property"}),
    "property": ({"name", "value"}, {"name", "value"}, set()),
    "testcase": (
        {"name", "time", "classname", "group"},
        {"name"},
        {"skipped", "error", "failure", "rerunFailure", "rerunError", "flakyFailure"}
        | {"flakyError", "system-out", "system-err"},
    ),
    "failure": ({"type", "message"}, set(), set()),
    "error": ({"type", "message"}, set(), set()),
    "flakyFailure": ({"type", "message"}, {"type"}, {"stackTrace", "system-out", "system-err"}),
    "flakyError": ({"type", "message"}, {"type"}, {"stackTrace", "system-out", "system-err"}),
    "system-out": (set(), set(), set()),
}


def assert_xunit2(content: bytes) -> ET.Element:
    """The root, if the document keeps the rules of the schema and its sums are right."""
    root = ET.fromstring(content)
    assert root.tag in ("testsuites", "testsuite")
    for element in root.iter():
        allowed, required, children = ELEMENTS[element.tag]
        assert set(element.attrib) <= allowed, element.tag
        assert required <= set(element.attrib), element.tag
        assert {child.tag for child in element} <= children, element.tag
    for suite in root.iter("testsuite"):
        for attribute, tag in (("tests", "testcase"), ("failures", "failure"), ("errors", "error")):
            assert suite.get(attribute) == str(len(list(suite.iter(tag)))), suite.get("name")
    assert not list(root.iter("skipped")), "most servers show it in green"
    return root


@pytest.fixture
def held(tmp_path: Path) -> Held:
    runs = tmp_path / "runs"
    write_run(runs / "kraft" / "good", VALID)
    write_run(runs / "kraft" / "bad", stale_read(3), seed=3)
    write_run(runs / "kraft" / "bad-too", stale_read(9), seed=9)
    write_run(runs / "kraft" / "spared", stale_read(4, "spared-kind"), seed=4)
    write_run(runs / "kraft" / "open", UNDECIDED, seed=5)
    write_run(
        runs / "kraft" / "retried", VALID, seed=6, harness_failed=True, problems=("No disk.",)
    )
    write_run(runs / "kraft" / "retry", VALID, seed=6, replay_of="runs/kraft/retried")
    write_run(runs / "kraft" / "dead", judged=False)
    write_run(runs / "kraft" / "hollow", VALID, vacuous=(f"Nothing bit. {HOSTILE}",))
    demands = ("runs_valid >= 1", "runs_valid >= 900", "violations{checker=bank} == 0")
    spared = f'fingerprint = "{SPARED}"\nuntil = 2026-11-21\nreason = "known"\n'
    read = policy(tmp_path, *demands, more=f"[[quarantine]]\n{spared}")
    return hold_gate(GateRequest(read, read.tier(None), (str(runs),), baseline=None, now=NOW))


def junit(held: Held) -> ET.Element:
    return assert_xunit2(to_junit(held.record, held.runs, held.failures, held.flaky))


def test_junit_keeps_the_schema_and_says_it_all(held: Held) -> None:
    root = junit(held)
    suites = {suite.get("id"): suite for suite in root.iter("testsuite")}
    bad = suites["kraft/bad"]
    properties = {one.get("name"): one.get("value") for one in bad.iter("property")}
    assert properties["seed"] == "3"
    assert properties["reproduce"] == "splitbrain test --seed 3"
    (failure,) = bad.iter("failure")
    assert failure.get("message") == "Not linearizable. read of 3 has no place"
    assert "splitbrain test --seed 3" in (failure.text or "")
    names = [case.get("name") for case in root.iter("testcase")]
    assert len(names) == len(set(names)), "a server merges cases of one name"


def test_a_quarantined_violation_and_a_pass_on_retry_are_flaky(held: Held) -> None:
    suites = {suite.get("id"): suite for suite in junit(held).iter("testsuite")}
    (flaky,) = suites["kraft/spared"].iter("flakyFailure")
    assert flaky.get("type") == SPARED
    assert (flaky.text or "").startswith("Quarantined until 2026-11-21: known")
    assert suites["kraft/spared"].get("failures") == "0"
    assert len(list(suites["kraft/retried"].iter("flakyError"))) == 1
    assert suites["kraft/retried"].get("errors") == "0"


@pytest.mark.parametrize(
    ("is_new", "told"), [(True, ", new\n"), (False, ", known\n"), (None, "\n")]
)
def test_junit_says_which_failures_are_new(held: Held, is_new: bool | None, told: str) -> None:
    every = tuple(msgspec.structs.replace(one, is_new=is_new) for one in held.failures.all)
    failures = msgspec.structs.replace(held.failures, all=every)
    root = assert_xunit2(to_junit(held.record, held.runs, failures, held.flaky))
    names = {one.text for one in every}
    cases = [one for one in root.iter() if one.get("type") in names]
    assert {one.tag for one in cases} == {"failure", "flakyFailure"}
    for one in cases:
        assert f"{one.get('type')}{told}" in (one.text or "")


def test_what_proves_nothing_is_an_error_or_a_failure(held: Held) -> None:
    suites = {suite.get("id"): suite for suite in junit(held).iter("testsuite")}
    assert suites["kraft/dead"].get("errors") == "1"
    assert suites["kraft/open"].get("errors") == "1"
    assert suites["kraft/hollow"].get("failures") == "1"
    gate = suites[held.record.at]
    assert gate.get("failures") == "2"
    assert gate.get("errors") == "1"


def test_the_json_comes_back(held: Held) -> None:
    assert decode_record(encode_record(held.record)) == held.record
    assert held.record.figures["runs"].value == 9
    with pytest.raises(ValueError, match="schema 2"):
        decode_record(encode_record(msgspec.structs.replace(held.record, schema=2)))
    with pytest.raises(ValueError, match="no gate's record"):
        decode_record(encode_record(msgspec.structs.replace(held.record, kind="x")))


def test_markdown_shows_what_is_new_first_and_text_from_outside_literally(held: Held) -> None:
    record = held.record
    first, *others = record.failures
    known = msgspec.structs.replace(first, fingerprint="f1-known0000000", new=False)
    new = msgspec.structs.replace(first, fingerprint="f1-new000000000", new=True)
    text = to_markdown(
        msgspec.structs.replace(record, failures=(known, new, *others), baseline="before")
    )
    places = [
        text.index(part)
        for part in ("# Gate", "## New failures", "f1-new", "## Thresholds", "f1-known")
    ]
    assert places == sorted(places)
    assert "<script>" not in text
    assert "\x1b" not in text


@pytest.mark.parametrize("limit", [600, 5_000, 1_000_000])
def test_markdown_stays_below_its_limit_and_says_what_it_left_out(held: Held, limit: int) -> None:
    record = held.record
    vacuous = msgspec.structs.replace(record.runs[0], sentence="ä" * 300, outcome="vacuous")
    runs = tuple(msgspec.structs.replace(vacuous, run=f"r{number}") for number in range(4_000))
    text = to_markdown(msgspec.structs.replace(record, runs=runs), limit)
    assert limit / 2 < len(text.encode()) <= limit
    assert text.rstrip().endswith("stands in gate.json._")


def test_the_summary_of_one_run_keeps_the_schema_too(tmp_path: Path) -> None:
    from splitbrain.harness.report.junit import to_junit as of_run

    folder = write_run(tmp_path / "bad", stale_read(), UNDECIDED, vacuous=("Nothing bit.",))
    root = assert_xunit2(of_run(read_results(folder / "results.json")))
    assert (root.get("failures"), root.get("errors")) == ("2", "1")


def test_the_record_names_no_more_than_a_few_runs_of_a_failure(held: Held) -> None:
    assert isinstance(held.record, GateRecord)
    by_runs = {one.runs: len(one.cases) for one in held.record.failures}
    assert by_runs == {2: 2, 1: 1}
