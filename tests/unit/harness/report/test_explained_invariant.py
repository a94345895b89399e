"""The page tells of a violated invariant what it says, why it matters and how it breaks."""

from pathlib import Path
from typing import Any

import pytest
from markupsafe import escape

from splitbrain.checker.verdict import CheckResult, Verdict
from splitbrain.harness.judge.evidence_loader import load_run
from splitbrain.harness.report.page import report_page
from splitbrain.systems.kraft.adapter import KraftSystem
from tests.synthetic_runs import write_run
from tests.unit.harness.small_results import results_with


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_run(tmp_path_factory.mktemp("page") / "run", operations_per_second=40)


def page_with(run: Path, checker: str, *found: dict[str, Any]) -> str:
    sentence = str(found[0]["sentence"])
    result = CheckResult(checker, Verdict.INVALID, sentence, violations=found)
    given = results_with(verdict=Verdict.INVALID, checkers=(result,))
    return report_page(load_run(run), given, None)


def test_a_violated_invariant_is_explained_once_and_with_its_picture(run: Path) -> None:
    sentence = "INV-09 was violated at n1 12 ms into the run, in step 40: it commits too early."
    found = {"kind": "INV-09", "sentence": sentence, "node": "n1", "time": 1, "step": 40}
    page = page_with(run, "invariants", found, found)
    (text,) = (text for text in KraftSystem().explanations["invariant"] if text.name == "INV-09")
    for told in (text.says, text.why, text.source, "splitbrain explain INV-09", text.breaks):
        assert page.count(str(escape(told))) == 1


def test_an_invariant_without_words_is_told_by_its_sentence(run: Path) -> None:
    found = {"kind": "MY-01", "sentence": "MY-01 was violated: the shelf fell."}
    page = page_with(run, "invariants", found)
    assert found["sentence"] in page
    assert 'class="drawn"' not in page


def test_an_anomaly_has_its_account_and_no_lesson(run: Path) -> None:
    found = {"kind": "stale", "sentence": "It is stale.", "node": "n1"}
    assert 'class="drawn"' not in page_with(run, "set-full", found)
