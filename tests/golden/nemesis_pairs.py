"""The stories of two faults side by side: each kind with those that others are most often beside.

The kind in question hits n2, and the other fault n2 as well or n3.
"""

from collections.abc import Iterator
from typing import Any, Final

from splitbrain.contracts.fault import Fault
from splitbrain.nemesis.fault_options import BEYOND_PROMISE
from splitbrain.nemesis.kinds import fault_kind
from tests.golden.story import Story, planned

_BESIDE: Final = ("kill", "partition", "pause")
_SAME: Final = "n2"
_OTHER: Final = "n3"


def pairs_of(name: str) -> Iterator[Story]:
    """All stories of two faults, of which one is of the kind."""
    partners = (*_BESIDE, *([] if name in _BESIDE else [name]))
    for partner in partners:
        for node in (_SAME, _OTHER):
            pair = (_fault(name, _SAME, 0, 1000), _fault(partner, node, 1, 2000))
            yield Story(name=f"then {partner} of {node}", schedule=pair)
    for partner in partners:
        if partner != name:
            pair = (_fault(partner, _SAME, 0, 1000), _fault(name, _SAME, 1, 2000, lasts_ms=1500))
            yield Story(name=f"within {partner} of {_SAME}", schedule=pair)
    for partner in partners:
        pair = (_fault(name, _SAME, 0, 1000), _fault(partner, _SAME, 1, 1000))
        yield Story(name=f"with {partner} of {_SAME} at one moment", schedule=pair)


def _fault(name: str, node: str, index: int, at_ms: int, **more: Any) -> Fault:
    kind = fault_kind(name)
    options: dict[str, Any] = {BEYOND_PROMISE: True} if kind.rule == "lies" else {}
    target = kind.first_target if kind.refuses(node) else node
    return planned(name, target, index=index, at_ms=at_ms, options=options, **more)
