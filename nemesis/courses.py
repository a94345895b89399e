"""What a fault does over time, as data: timed steps, how it is healed, and what must be seen.

The driver does each step at its time, looks for what the step says must be seen, and heals when the
fault's time is over. Healing is part of the fault and is done also where it never bit.
"""

from typing import Final

import msgspec

from splitbrain.contracts.fault import US_PER_MS, Link, Microseconds, Milliseconds
from splitbrain.contracts.names import NodeName
from splitbrain.nemesis.acts import Act
from splitbrain.nemesis.expectations import Expectation


class Step(msgspec.Struct, frozen=True):
    """Some acts at one time."""

    acts: tuple[Act, ...]
    #: Since the injection.
    after_us: Microseconds = 0
    #: What must be seen once they are done; nothing where only an exact world can do them, which
    #: knows what it did.
    seen: tuple[Expectation, ...] = ()
    #: Whether a node must start before it can be seen, which takes longer than a fault to bite.
    awaits_start: bool = False


#: Between strokes that come faster than this there is no time to look: a probe of what is cut waits
#: its whole timeout.
LOOK_MS_MIN: Final[Milliseconds] = 600


def looks_at(number: int, count: int, apart_ms: Milliseconds) -> bool:
    """Whether a stroke of several is looked at: all of them, of fast ones the first and last two.

    Two, since there may be strokes of two sorts in turn.

    Args:
        number: of the stroke, from 0.
        count: of all strokes.
        apart_ms: from one stroke to the next.
    """
    return apart_ms >= LOOK_MS_MIN or number == 0 or number >= count - 2


class Course(msgspec.Struct, frozen=True, kw_only=True):
    """One fault from its injection to what shows that it is over."""

    #: By their times; the first is the injection.
    steps: tuple[Step, ...]
    #: What must be seen before the heal: a node may still be about to meet what was done to it.
    settled: tuple[Expectation, ...] = ()
    #: Undoes every step, whichever of them were done.
    heal: tuple[Act, ...]
    #: What must be seen once it is healed, else the environment has failed.
    healed: tuple[Expectation, ...] = ()
    #: What must be seen of the system's own traffic then, else the system has not recovered.
    resumed: tuple[Expectation, ...] = ()


class Setting(msgspec.Struct, frozen=True):
    """What a kind's course is made for."""

    #: All nodes of the cluster.
    nodes: tuple[NodeName, ...]
    #: The nodes hit.
    hit: tuple[NodeName, ...]
    #: The links hit.
    links: tuple[Link, ...]
    #: Who led when the target was resolved.
    leader: NodeName | None
    duration_us: Microseconds
    #: Settles what is open.
    draw: int
    #: How long the probe of a cut link takes; 0 where nobody probes.
    probe_us: Microseconds = 0

    @property
    def duration_ms(self) -> Milliseconds:
        """The duration in whole milliseconds, as most courses are made of."""
        return self.duration_us // US_PER_MS
