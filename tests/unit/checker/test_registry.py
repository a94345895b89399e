import pytest

from splitbrain.checker.evidence import Evidence
from splitbrain.checker.models.registry import MODELS
from splitbrain.checker.names import checker_names, history_checker, linearizability_model
from splitbrain.checker.registry import checker_named
from splitbrain.checker.verdict import Verdict
from splitbrain.contracts.budget import Unlimited
from splitbrain.contracts.errors import UsageError
from tests.unit.checker.operations import operation


def test_every_name_that_is_offered_is_known() -> None:
    for name in checker_names():
        assert callable(checker_named(name))


@pytest.mark.parametrize("name", checker_names())
def test_every_checker_takes_evidence_of_nothing(name: str) -> None:
    result = checker_named(name)(Evidence(operations=()), Unlimited())
    assert result.verdict in (Verdict.VALID, Verdict.UNKNOWN)
    assert result.reason


@pytest.mark.parametrize("name", ["linearizability", "linearizability:nonsense", "set-ful", ""])
def test_an_unknown_name_is_refused_with_the_known_ones(name: str) -> None:
    with pytest.raises(UsageError, match="Choose one of"):
        checker_named(name)


def test_the_model_of_a_name_is_told() -> None:
    assert linearizability_model("linearizability:cas-register") == "cas-register"
    assert linearizability_model("set-full:stale-reads-allowed") is None
    assert linearizability_model("split-brain") is None


def test_a_named_checker_judges() -> None:
    read = operation("read", None, 5, start=0, end=1)
    result = checker_named("linearizability:register")(Evidence(operations=(read,)), Unlimited())
    assert result.verdict is Verdict.INVALID


def test_the_total_of_a_bank_is_part_of_its_name() -> None:
    assert history_checker("bank:total=-5") == "bank:total=-5"
    for name in ("bank:total=", "bank:total=ten", "bank:total=1.5"):
        with pytest.raises(UsageError, match="is no whole number"):
            checker_named(name)
    read = operation("read", None, {"a": 5, "b": 4}, start=0, end=1)
    for total, verdict in ((10, Verdict.INVALID), (9, Verdict.VALID)):
        checker = checker_named(f"bank:total={total}")
        assert checker(Evidence(operations=(read,)), Unlimited()).verdict is verdict


def test_the_models_of_the_command_line_are_there() -> None:
    assert set(MODELS) == {
        *("register", "cas-register", "multi-register", "kv", "counter", "set"),
        *("fifo-queue", "unordered-queue", "stack", "priority-queue"),
        *("mutex", "fenced-register", "topics"),
    }
