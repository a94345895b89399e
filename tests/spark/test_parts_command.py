"""``analyze --parts``: Spark's word on every part of a run is the checker's."""

from pathlib import Path

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from splitbrain.checker.linearizability.check import check_part
from splitbrain.checker.linearizability.part.parts import split
from splitbrain.checker.models.registry import model_named
from splitbrain.checker.verdict import Verdict
from splitbrain.contracts.analysis.parts import PartVerdict
from splitbrain.contracts.budget import Unlimited
from splitbrain.harness.judge.evidence_loader import load_run
from splitbrain.harness.judge.part_verdicts import answer_lines, verdict_of
from splitbrain.harness.report.publishing import judge_and_publish as judge
from splitbrain.history.run_folder import RunFolder
from splitbrain.spark_analysis.parts_process import judge_parts
from splitbrain.spark_analysis.schemas import table_of
from tests.synthetic_runs import Flaw, SyntheticRun

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]

MODEL = "cas-register"
COLUMNS = ("key", "verdict", "algorithm", "reason", "operations")


@pytest.mark.parametrize("flaw", [None, "stale-read"])
def test_parts_of_a_run_have_the_checkers_verdicts(
    session: SparkSession, tmp_path: Path, flaw: Flaw | None
) -> None:
    folder = SyntheticRun(tmp_path / "run", flaw=flaw, operations_per_second=40).write()
    answer = judge_parts(session, folder, [MODEL])

    by_checker = [
        check_part(part, MODEL, Unlimited())
        for part in split(load_run(folder).operations, model_named(MODEL))
    ]
    place = RunFolder(folder).analysis_result(table_of(PartVerdict).name)
    stored = pq.read_table(place).to_pylist()
    assert {tuple(row[name] for name in COLUMNS) for row in stored} == {
        (one.key, one.verdict.value, one.algorithm, one.reason, one.operations)
        for one in by_checker
    }
    assert len(stored) == len(by_checker) > 1

    # A whole judgement of the folder concludes the same.
    results = {one.checker: one for one in judge(folder, analyze=False).checkers}
    linearizability = results[f"linearizability:{MODEL}"]
    assert verdict_of(answer) is linearizability.verdict
    assert verdict_of(answer) is (Verdict.VALID if flaw is None else Verdict.INVALID)
    parts = {count.verdict: count.parts for count in answer.counts}
    assert sum(parts.values()) == linearizability.figures["parts"]
    assert parts.get("invalid", 0) == linearizability.figures["parts-invalid"]
    assert sum(count.operations for count in answer.counts) == linearizability.figures["operations"]
    assert len(answer.examples) == parts.get("invalid", 0)
    assert all(one.reason in linearizability.reason for one in answer.examples[:1])
    assert answer.damage == ()
    allowed = {MODEL: "its manual says so"}
    assert verdict_of(answer, allowed) is Verdict.VALID
    assert verdict_of(answer, {"mutex": "no such part"}) is verdict_of(answer)
    said = " ".join(answer_lines(answer, allowed))
    assert ("allowed: its manual says so" in said) is (flaw is not None)
    assert "VALID, of" in said


def test_what_is_left_of_a_torn_history_is_never_valid(
    session: SparkSession, tmp_path: Path
) -> None:
    folder = SyntheticRun(tmp_path / "run", operations_per_second=5).write()
    with RunFolder(folder).history.open("ab") as history:
        history.write(b'{"index": 99')
    answer = judge_parts(session, folder, [MODEL])
    assert {count.verdict for count in answer.counts} == {"valid"}
    assert answer.damage == ("The last line of history.jsonl is torn.",)
    assert verdict_of(answer) is Verdict.UNKNOWN
