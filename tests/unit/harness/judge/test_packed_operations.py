"""A worker gets the operations as handed over, whatever the values are."""

import pickle
from typing import Any

import pytest
from hypothesis import given

from splitbrain.checker.evidence import Evidence
from splitbrain.checker.linearizability.part.parts import Part
from splitbrain.harness.judge.checking import Packed
from splitbrain.history.pairing import pair
from splitbrain.history.records import Event, PairedOperation
from tests.properties.history.histories import histories


def sent(record: Any) -> Any:
    return pickle.loads(pickle.dumps(Packed(record), protocol=pickle.HIGHEST_PROTOCOL)).record


@given(histories())
def test_operations_of_any_history_arrive_as_they_are(events: list[Event]) -> None:
    part = Part("a", tuple(pair(events)))
    assert sent(part) == part


@pytest.mark.parametrize(
    "value", [None, True, -(2**63), 2**64 - 1, 2**70, 0.5, "é\x00", [[]], {"a": [1, None]}, (1, 2)]
)
def test_every_value_arrives(value: Any) -> None:
    operation = PairedOperation(
        3, 1, "read", None, None, value, "ok", 5, 9, position=(2, 7), node="n1", final=True
    )
    part = Part(None, (operation,))
    arrived = sent(part).operations[0]
    assert arrived.result == (list(value) if isinstance(value, tuple) else value)
    assert (arrived.position, arrived.node, arrived.final) == ((2, 7), "n1", True)


def test_all_other_evidence_arrives_too() -> None:
    evidence = Evidence(operations=(), voters=3, converged=True)
    assert sent(evidence) == evidence
