"""Happenings that a fault may wait for, told from the nodes' own state events, pure.

On real runtimes the harness hears of them some milliseconds later; in simulation they are moments
between two effects of a node. The names are those of the simulation where it has the same.
"""

from typing import Final

import msgspec

from splitbrain.contracts.errors import UsageError
from splitbrain.contracts.fault import US_PER_MS, Awaited
from splitbrain.contracts.names import NodeName
from splitbrain.contracts.nearest import or_nearest
from splitbrain.contracts.state_event import StateEvent

#: Where: whoever leads when it happens, or wherever.
AT_LEADER: Final = "leader"
ANYWHERE: Final = "any"

#: Name to what it means, for users.
HAPPENINGS: Final[dict[str, str]] = {
    "leads": "a node becomes leader",
    "changes-role": "a node takes another role than leader",
    "leader-appends": "the leader appends records",
    "follower-appends": "another node appends records",
    "commits": "the leader's high watermark advances",
    "learns-commit": "another node's high watermark advances",
    "truncates": "a node cuts off the end of its log",
    "starts": "a node's process has started",
}


def check_awaited(when: Awaited, nodes: tuple[NodeName, ...]) -> None:
    """Refuse to wait for what cannot be.

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
    """What is waited for, in words."""
    place = "" if when.node == ANYWHERE else f" at {'the ' * (when.node == AT_LEADER)}{when.node}"
    epoch = "" if when.epoch is None else f" in epoch {when.epoch}"
    times = "once" if when.count == 1 else f"{when.count} times"
    return f"{when.on!r}{place}{epoch} {times}"


class Told(msgspec.Struct, frozen=True):
    """Something that has happened at a node."""

    name: str
    node: NodeName
    epoch: int
    #: Whether the node leads.
    leads: bool


class Tale:
    """Tells happenings from the stream of all nodes' state events; knows who leads."""

    def __init__(self) -> None:
        self._leads: dict[NodeName, bool] = {}
        self._watermarks: dict[NodeName, int] = {}

    def told(self, event: StateEvent) -> Told | None:
        """What the event says has happened; None: nothing that is waited for."""
        node = NodeName(event.node)
        if event.kind == "started":
            self._leads[node] = False
        elif event.kind == "role":
            self._leads[node] = event.role == "leader"
        name = self._name(event, node)
        if name is None:
            return None
        return Told(name, node, event.epoch, self._leads.get(node, False))

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
        """Nodes tell of one advance twice, as watermark and as commit; it counts once."""
        if offset <= self._watermarks.get(node, -1):
            return False
        self._watermarks[node] = offset
        return True


class Count:
    """Counts what one fault waits for."""

    def __init__(self, when: Awaited) -> None:
        self._when = when
        self._left = max(1, when.count)
        #: Where the last of them was; None while it is still to come.
        self.there: NodeName | None = None

    def heard(self, told: Told) -> bool:
        """Take in a happening; whether it was the last that was waited for."""
        when = self._when
        fits = (
            self.there is None
            and told.name == when.on
            and (when.epoch is None or told.epoch == when.epoch)
            and (
                when.node == ANYWHERE
                or (told.leads if when.node == AT_LEADER else told.node == when.node)
            )
        )
        if not fits:
            return False
        self._left -= 1
        if self._left:
            return False
        self.there = told.node
        return True
