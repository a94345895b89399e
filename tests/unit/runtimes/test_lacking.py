"""Arms that a runtime lacks refuse in one sentence, whatever they are asked."""

import inspect
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from splitbrain.contracts import arms
from splitbrain.contracts.errors import CapabilityError
from splitbrain.contracts.fault import Link
from splitbrain.contracts.names import NodeName
from splitbrain.runtimes.lacking import LackingClocks, LackingLinks

N1 = NodeName("n1")
ARMS: dict[type[Any], type[Any]] = {
    arms.LinkArm: LackingLinks,
    arms.ClockArm: LackingClocks,
}
#: Questions that have an honest answer.
ANSWERED: dict[str, Any] = {"shaped": {}}
WORDS: dict[str, Any] = {"link": Link(N1, NodeName("n2")), "node": N1}


def acts() -> Iterator[Any]:
    for protocol, lacking in ARMS.items():
        for name, act in inspect.getmembers(protocol, inspect.isfunction):
            if not name.startswith("_"):
                yield pytest.param(lacking, name, act, id=f"{protocol.__name__}.{name}")


@pytest.mark.parametrize(("lacking", "name", "act"), list(acts()))
def test_every_act_of_every_arm_is_refused_in_one_sentence(
    lacking: type[Any], name: str, act: Callable[..., Any]
) -> None:
    arm = lacking("paper", "Use --runtime docker")
    parameters = list(inspect.signature(act).parameters)[1:]
    arguments = [WORDS.get(parameter, 1) for parameter in parameters]
    if name in ANSWERED:
        assert getattr(arm, name)(*arguments) == ANSWERED[name]
        return
    with pytest.raises(CapabilityError, match=r"runtime paper\): .*\. Use --runtime docker$"):
        getattr(arm, name)(*arguments)


def test_the_reason_may_be_told() -> None:
    with pytest.raises(CapabilityError, match="nodes are plain processes"):
        LackingLinks("local", "Go on", "nodes are plain processes").reset([])
