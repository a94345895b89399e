"""Every violation of the corpora has its name, or says that it has none; columns give the same."""

import json
from pathlib import Path
from typing import Any

import pytest

from splitbrain.checker.anomalies.names import MEANINGS
from splitbrain.checker.linearizability.check import check
from splitbrain.checker.linearizability.column_history import split_columns
from splitbrain.checker.linearizability.part.parts import split
from splitbrain.checker.models.registry import MODELS
from splitbrain.contracts.budget import Unlimited
from splitbrain.history.column_reader import read_columns
from splitbrain.history.importers import load
from splitbrain.history.value_shapes import wrong_shape
from tests.corpus.recorded_histories import folder, recorded_verdicts

CORPUS = Path(__file__).parents[3] / "corpus" / "histories"
VERDICTS: dict[str, dict[str, str]] = json.loads((CORPUS / "verdicts.json").read_text())
MODELS_OF_CORPUS = {"etcd-register": "cas-register", "kv-append (partition by key)": "kv"}

#: Names in the corpus, by file.
OF_CORPUS = {
    "acknowledged-write-lost-at-failover.jsonl": "lost write",
    "append-is-lost.edn": "stale read",
    "equal-times-within-a-process-are-ordered.jsonl": "stale read",
    "etcd-overwritten-value-comes-back.json": "stale read",
    "failed-write-is-seen.jsonl": "dirty read",
    "foreign-without-index-node-and-time.jsonl": "phantom value",
    "independent-keys-answer-of-another.edn": "phantom value",
    "kv-get-misses-an-append.txt": "stale read",
    "packed.jsonl.gz": "wrong refusal",
    "reads-go-back.jsonl": "stale read",
    "refused-cas-had-the-value.log": "wrong refusal",
    "refused-cas-saw-the-value.jsonl": "wrong refusal",
    "set-read-misses-an-element.jsonl": "stale read",
    "stale-read-on-isolated-leader.jsonl": "stale read",
    "table-with-a-stale-read.parquet": "stale read",
    "timed-out-write-takes-effect-twice.jsonl": "stale read",
    "two-cas-from-one-value.jsonl": "double success of a compare-and-set",
}


def test_every_violation_of_the_corpus_is_looked_at() -> None:
    assert {n for n, one in VERDICTS.items() if one["verdict"] == "invalid"} == set(OF_CORPUS)


@pytest.mark.parametrize("name", OF_CORPUS)
def test_a_violation_of_the_corpus_has_its_name(name: str) -> None:
    result = check(load(CORPUS / name).operations, VERDICTS[name]["model"], Unlimited())
    assert result.violations[0]["anomaly"] == OF_CORPUS[name]


def recorded() -> list[Any]:
    root = folder({})
    return [
        pytest.param(root / name, MODELS_OF_CORPUS[verdict["model"]], id=name)
        for name, verdict in sorted(recorded_verdicts(root).items())
        if not verdict["linearizable"]
    ]


@pytest.mark.parametrize(("path", "model"), recorded())
def test_a_recorded_violation_has_a_name_or_says_that_it_has_none(path: Path, model: str) -> None:
    result = check(load(path).operations, model, Unlimited())
    for violation in result.violations:
        assert violation["anomaly"] in MEANINGS
        assert ("account" in violation) == (violation["anomaly"] != "not linearizable")
        json.dumps(violation)


def test_columns_keep_the_failed_changes_that_names_need() -> None:
    path = CORPUS / "failed-write-is-seen.jsonl"
    columns = read_columns(path, None)
    assert columns is not None
    model = MODELS["cas-register"]
    parts = split_columns(columns, model, wrong_shape)
    assert parts is not None
    (part,) = split(load(path).operations, model)
    assert [o.type for o in part.failed] == ["fail"]
    assert parts.part(0) == part
