"""The test files that ``splitbrain shrink --save-test`` writes."""

import ast
from pathlib import Path

import pytest

from splitbrain.contracts.errors import HarnessError, UsageError
from splitbrain.contracts.fault import Awaited, Fault
from splitbrain.contracts.scenario import SCENARIO_SCHEMA, LoadOptions, Scenario
from splitbrain.harness.campaign.shrinking.saved_test import (
    as_text,
    check_test_file,
    content_of_test,
    save_test,
)
from splitbrain.harness.campaign.sweep.regression import read_saved

SCENARIO = Scenario(
    system="kraft",
    seed=7,
    load=LoadOptions(kept=tuple((slot, n) for n in range(20) for slot in range(3))),
    faults=tuple(
        Fault(index, "kill", "there", 0, 5_000, index, when=Awaited("leads")) for index in range(3)
    ),
)
WITH_BUG = Scenario(system="kraft", seed=7, bugs=("vote-not-persisted",))


@pytest.mark.parametrize("scenario", [SCENARIO, WITH_BUG, Scenario(system="kraft", seed=0)])
def test_the_text_reads_back_as_the_same_world(scenario: Scenario) -> None:
    text = as_text(scenario)
    assert read_saved(text) == scenario
    assert max(map(len, text.splitlines())) <= 100


def test_what_is_as_by_default_is_left_out() -> None:
    assert (
        as_text(Scenario(system="kraft", seed=0))
        == f'{{"schema": {SCENARIO_SCHEMA}, "system": "kraft", "seed": 0}}'
    )
    assert '"options"' not in as_text(SCENARIO)


def test_a_world_with_a_bug_asserts_both_and_one_without_asserts_nothing_found() -> None:
    with_bug = content_of_test(WITH_BUG, ("INV-05",), "two votes")
    assert "assert replays(SCENARIO, bugs=()) == ()" in with_bug
    assert 'assert "INV-05" in replays(SCENARIO)' in with_bug
    without = content_of_test(SCENARIO, ("linearizability:cas-register",), "a stale read")
    assert "assert replays(SCENARIO) == ()" in without
    assert "def test_linearizability_cas_register_holds() -> None:" in without
    assert " in replays" not in without


@pytest.mark.parametrize(
    "sentence", ["plain", 'with "quotes"', "ends in a \\", "x" * 50 + " " + "y" * 90, "two\nlines"]
)
def test_any_sentence_makes_a_docstring_of_one_line(sentence: str) -> None:
    content = content_of_test(SCENARIO, ("INV-05",), sentence)
    told = ast.get_docstring(ast.parse(content))
    assert told is not None
    assert told.startswith("INV-05: ")
    assert max(map(len, content.splitlines())) <= 100


def test_a_search_that_ended_early_is_told_in_the_docstring() -> None:
    whole = content_of_test(SCENARIO, ("INV-05",), "two votes")
    assert "The search was" not in whole
    cut = content_of_test(SCENARIO, ("INV-05",), "two votes", "cut short by its limit; go on")
    told = ast.get_docstring(ast.parse(cut))
    assert told is not None
    assert told.endswith("\nThe search was cut short by its limit; go on.")


def test_other_bugs_may_be_asked_for() -> None:
    assert read_saved(as_text(WITH_BUG), bugs=()).bugs == ()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        '{"system": "kraft"}',
        '{"system": 5, "seed": 1}',
        '{"system": "kraft", "seed": 1, "nodes": 0}',
    ],
)
def test_a_broken_text_is_told_in_a_sentence(text: str) -> None:
    with pytest.raises(UsageError, match="the saved scenario cannot be read: "):
        read_saved(text)


def test_a_file_is_never_replaced(tmp_path: Path) -> None:
    path = tmp_path / "test_it.py"
    check_test_file(path)
    save_test(path, "mine")
    with pytest.raises(UsageError, match="would replace"):
        check_test_file(path)
    with pytest.raises(HarnessError, match="could not write the test"):
        save_test(path, "other")
    assert path.read_text() == "mine"


@pytest.mark.parametrize("name", ["it.py", "test_it.txt", "test_.py", "test_a b.py"])
def test_names_that_pytest_would_not_see_are_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"pytest looks for test_\*\.py"):
        check_test_file(tmp_path / name)


def test_a_folder_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="its folder does not exist"):
        check_test_file(tmp_path / "gone" / "test_it.py")
