"""Looks for what a fault lets be seen while others are in force.

What others keep from being seen is left out, and that is said; it is no failure of a heal, and no
proof of a bite. Must never call seen what nobody looked for.
"""

from collections.abc import Callable, Sequence
from typing import Final

from harness.evidence import Evidence
from harness.holds import Holds
from nemesis.expectations import Expectation

#: Further looks, where others act amid each.
_AGAIN: Final = 2


def undisturbed(
    holds: Holds,
    index: int,
    expectations: Sequence[Expectation],
    look: Callable[[Sequence[Expectation]], Evidence],
    *,
    is_healed: bool,
) -> Evidence:
    """What a look for the undisturbed of these expectations shows.

    Args:
        holds: what all faults hold.
        index: the fault whose expectations they are.
        expectations: all of them.
        look: waits for some of them.
        is_healed: whether they are to show a heal.
    """

    def of(those: Sequence[Expectation]) -> list[Expectation]:
        return [item for item in those if not holds.disturbs(index, item, is_healed=is_healed)]

    wanted = of(expectations)
    for is_last in (*(False for _ in range(_AGAIN)), True):
        if not wanted:
            break
        before = holds.changes()
        seen = look(wanted)
        if seen.seen or is_last or holds.changes() == before:
            return Evidence(seen.seen, seen.sentence + _left_out(expectations, wanted))
        # Others have begun or ended meanwhile, and may have kept from being seen what is missing.
        wanted = of(wanted)
    told = _left_out(expectations, wanted).removeprefix("; ")
    return Evidence(is_healed, told or "nothing to be seen")


def _left_out(expectations: Sequence[Expectation], wanted: Sequence[Expectation]) -> str:
    count = len(expectations) - len(wanted)
    return f"; {count} not looked for beside other faults" if count else ""
