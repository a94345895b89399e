"""A model is its module and a line in the registry."""

from typing import Any

import pytest

from splitbrain.checker.evidence import Evidence
from splitbrain.checker.models import registry
from splitbrain.checker.models.model import Call, KeyedModel
from splitbrain.checker.names import checker_names, history_checker, history_models
from splitbrain.checker.registry import checker_named
from splitbrain.checker.verdict import Verdict
from splitbrain.contracts.budget import Unlimited
from tests.unit.checker.operations import operation


class Latch(KeyedModel):
    """A latch that stays set once it was."""

    name = "latch"
    functions = frozenset({"set", "look"})
    initial = False

    def step(self, state: Any, call: Call) -> tuple[bool, Any]:
        if call.f == "set":
            return True, True
        return not call.known or call.result == state, state


@pytest.fixture(autouse=True)
def dummy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(registry.MODELS, "latch", Latch())


def test_a_new_model_is_known_by_name_to_histories_and_workloads() -> None:
    assert "latch" in history_models()
    assert history_checker("latch") == "linearizability:latch"
    assert "linearizability:latch" in checker_names()
    assert registry.models_with({"set"}) == ("latch",)


def test_a_new_model_judges() -> None:
    latched = operation("set", None, start=0, end=1)
    for seen, verdict in ((True, Verdict.VALID), (False, Verdict.INVALID)):
        evidence = Evidence(operations=(latched, operation("look", None, seen, start=2, end=3)))
        judged = checker_named("linearizability:latch")(evidence, Unlimited())
        assert judged.verdict is verdict
