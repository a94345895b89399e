"""Happenings that a fault may await, derived from the nodes' state events. Pure.

Real runtimes report them some milliseconds late; in simulation they are moments between two effects
of a node, under the same names where both have them.
"""

from typing import Final

import msgspec

from splitbrain.contracts.errors import UsageError
from splitbrain.contracts.fault import RECOVERED, US_PER_MS, Awaited
from splitbrain.contracts.names import NodeName
from splitbrain.contracts.nearest import or_nearest
from splitbrain.contracts.state_event import StateEvent

#: Places: the leader when it happens, or any node.
AT_LEADER: Final = "leader"
ANYWHERE: Final = "any"

#: Meanings by name, for users.
HAPPENINGS: Final[dict[str, str]] = {
    "leads": "a node becomes leader",
    "changes-role": "a node takes another role than leader",
    "leader-appends": "the leader appends records",
    "follower-appends": "another node appends records",
    "commits": "the leader's high watermark advances",
    "learns-commit": "another node's high watermark advances",
    "truncates": "a node cuts off the end of its log",
    "starts": "a node's process has started",
    RECOVERED: "no fault is in force and all nodes take part again",
}


def check_awaited(when: Awaited, nodes: tuple[NodeName, ...]) -> None:
    """Refuse to await an impossible happening.

    Raises:
        UsageError: names what is wrong.
    """
    if when.on not in HAPPENINGS:
        raise UsageError(
            f"a fault cannot wait for {when.on!r}", or_nearest(when.on, HAPPENINGS, "happenings")
        )
    if when.node not in (AT_LEADER, ANYWHERE, *nodes):
        raise UsageError(
            f"a fault cannot wait for what happens at {when.node!r}",
            f"Use {ANYWHERE}, {AT_LEADER}, or one of {', '.join(nodes)}",
        )
    if when.on == RECOVERED and (when.node != ANYWHERE or when.epoch is not None or when.count > 1):
        raise UsageError(
            f"a fault cannot wait for {RECOVERED!r} at one node, in one epoch or several times",
            "Leave node, epoch and count out: it is said of all nodes together",
        )
    for name, value, least in (
        ("count", when.count, 1),
        ("delay_ms", when.delay_us / US_PER_MS, 0),
        ("timeout_ms", None if when.timeout_us is None else when.timeout_us / US_PER_MS, 1),
        ("epoch", when.epoch, 0),
    ):
        if value is not None and value < least:
            raise UsageError(
                f"a fault cannot wait with {name} = {value:g}", f"Choose at least {least}"
            )


def sentence(when: Awaited) -> str:
    """Return the awaited happening in words."""
    if when.on == RECOVERED:
        return "the recovery of all nodes"
    place = "" if when.node == ANYWHERE else f" at {'the ' * (when.node == AT_LEADER)}{when.node}"
    epoch = "" if when.epoch is None else f" in epoch {when.epoch}"
    times = "once" if when.count == 1 else f"{when.count} times"
    return f"{when.on!r}{place}{epoch} {times}"


class Happening(msgspec.Struct, frozen=True):
    """Happening at a node."""

    name: str
    node: NodeName
    epoch: int
    leads: bool


class HappeningDetector:
    """Detector of happenings in the stream of all nodes' state events."""

    def __init__(self) -> None:
        self._leads: dict[NodeName, bool] = {}
        self._watermarks: dict[NodeName, int] = {}

    def detect(self, event: StateEvent) -> Happening | None:
        """Return the event's happening; None when a fault cannot await it."""
        node = NodeName(event.node)
        if event.kind == "started":
            self._leads[node] = False
        elif event.kind == "role":
            self._leads[node] = event.role == "leader"
        name = self._name(event, node)
        if name is None:
            return None
        return Happening(name, node, event.epoch, self._leads.get(node, False))

    def _name(self, event: StateEvent, node: NodeName) -> str | None:
        leads = self._leads.get(node, False)
        match event.kind:
            case "started":
                return "starts"
            case "role":
                return "leads" if leads else "changes-role"
            case "append":
                return "leader-appends" if leads else "follower-appends"
            case "commit" | "high-watermark":
                if not self._is_higher(node, event.offset or 0):
                    return None
                return "commits" if leads else "learns-commit"
            case "truncate":
                return "truncates"
            case _:
                return None

    def _is_higher(self, node: NodeName, offset: int) -> bool:
        """Count an advance once: nodes report it both as watermark and as commit."""
        if offset <= self._watermarks.get(node, -1):
            return False
        self._watermarks[node] = offset
        return True


class Count:
    """Counter of the happenings that one fault awaits."""

    def __init__(self, when: Awaited) -> None:
        self._when = when
        self._left = max(1, when.count)
        #: Node of the last of them; None until then.
        self.there: NodeName | None = None

    def heard(self, happening: Happening) -> bool:
        """Count a happening; return whether it was the last one awaited."""
        when = self._when
        fits = (
            self.there is None
            and happening.name == when.on
            and (when.epoch is None or happening.epoch == when.epoch)
            and (
                when.node == ANYWHERE
                or (happening.leads if when.node == AT_LEADER else happening.node == when.node)
            )
        )
        if not fits:
            return False
        self._left -= 1
        if self._left:
            return False
        self.there = happening.node
        return True
