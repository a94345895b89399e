"""A fingerprint stays when names, values and times change, and goes when the shape does."""

from random import Random
from typing import Any

import msgspec
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from splitbrain.checker.fingerprints import Fingerprint, fingerprint_of, is_fingerprint
from splitbrain.checker.linearizability.check import check
from splitbrain.checker.verdict import CheckResult, Verdict
from splitbrain.contracts.budget import Unlimited
from splitbrain.history.records import PairedOperation
from tests.unit.checker.small_histories import random_history

MODELS = ("register", "cas-register")


def fingerprint(operations: list[PairedOperation], model: str) -> Fingerprint | None:
    return fingerprint_of(check(operations, model, Unlimited()))


class Renaming:
    """Other keys, values, processes, nodes, indexes and times, each as different as before."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.shift = self.random.randrange(10**9)
        self.scale = self.random.randint(1, 1000)
        self.key = f"k{self.random.randrange(1000)}"
        self.values: dict[int, int] = {}
        self.processes: dict[int, int] = {}

    def of(self, operation: PairedOperation) -> PairedOperation:
        return msgspec.structs.replace(
            operation,
            index=operation.index * 3 + 7,
            process=self._fresh(self.processes, operation.process),
            key=self.key,
            node=f"m{self.random.randrange(5)}",
            argument=self.value(operation.argument),
            result=self.value(operation.result),
            start=operation.start * self.scale + self.shift,
            end=None if operation.end is None else operation.end * self.scale + self.shift,
        )

    def value(self, value: Any) -> Any:
        if isinstance(value, list | tuple):
            return [self.value(part) for part in value]
        if isinstance(value, int) and not isinstance(value, bool):
            return self._fresh(self.values, value)
        return value

    def _fresh(self, names: dict[int, int], name: int) -> int:
        if name not in names:
            new = self.random.randrange(10**6)
            while new in names.values():
                new = self.random.randrange(10**6)
            names[name] = new
        return names[name]


@pytest.mark.parametrize("model", MODELS)
@given(seed=st.integers(0, 10**9), other=st.integers(0, 10**9))
@settings(max_examples=100, deadline=None)
def test_a_failure_keeps_its_fingerprint_under_other_names_and_times(
    model: str, seed: int, other: int
) -> None:
    operations = random_history(Random(seed), model)
    found = fingerprint(operations, model)
    assume(found is not None)
    renaming = Renaming(other)
    assert fingerprint([renaming.of(operation) for operation in operations], model) == found


OPERATION = st.fixed_dictionaries(
    {
        "f": st.sampled_from(["read", "write", "cas"]),
        "type": st.sampled_from(["ok", "info", "fail"]),
        "process": st.integers(0, 3),
        "start": st.integers(0, 20),
        "length": st.one_of(st.none(), st.integers(0, 10)),
        "result": st.one_of(st.none(), st.tuples(st.just(1), st.just(2), st.booleans())),
    }
)


@given(
    drawn=st.lists(OPERATION, min_size=1, max_size=7),
    edges=st.lists(
        st.tuples(
            st.integers(0, 6),
            st.integers(0, 6),
            st.sampled_from(["real-time", "must-precede", "reads-from", "spoils"]),
            st.booleans(),
        ),
        max_size=6,
    ),
    order=st.randoms(use_true_random=False),
)
@settings(max_examples=300, deadline=None)
def test_the_order_in_which_a_core_is_written_down_does_not_matter(
    drawn: list[dict[str, Any]], edges: list[tuple[int, int, str, bool]], order: Random
) -> None:
    core = [
        {
            **operation,
            "index": number,
            "end": None if (length := operation["length"]) is None else operation["start"] + length,
        }
        for number, operation in enumerate(drawn)
    ]
    graph = {
        "edges": [
            {"source": a, "target": b, "key": kind, "contradiction": contradiction}
            for a, b, kind, contradiction in edges
            if a != b
        ],
    }
    shuffled = list(core)
    order.shuffle(shuffled)
    assert fingerprint_of(violated(core, graph)) == fingerprint_of(violated(shuffled, graph))


def violated(core: list[dict[str, Any]], graph: dict[str, Any]) -> CheckResult:
    found = {"kind": "not-linearizable", "core": core, "core_size": len(core), "graph": graph}
    return CheckResult("linearizability:x", Verdict.INVALID, "", violations=(found,))


NONSENSE = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["f", "type", "index", "start", "end"]), inner)
    ),
    max_leaves=10,
)
FIELDS = ("core", "core_size", "graph", "operations", "operation", "records", "leaders", "text")


@given(st.fixed_dictionaries({}, optional=dict.fromkeys(("kind", *FIELDS), NONSENSE)))
@settings(max_examples=400, deadline=None)
def test_whatever_an_old_record_holds_has_a_fingerprint(found: dict[str, Any]) -> None:
    fingerprint = fingerprint_of(CheckResult("old", Verdict.INVALID, "", violations=(found,)))
    assert fingerprint is not None
    assert is_fingerprint(fingerprint.text)
