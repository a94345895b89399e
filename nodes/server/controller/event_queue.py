"""The controller's queue: one event in each turn of the node, in the order in which they came.

Must never handle an event within the call that brought it. Source: KIP-631; Kafka's event queue.
"""

from collections import deque
from collections.abc import Callable
from typing import NamedTuple

from splitbrain.nodes.quorum.identifiers import Microseconds
from splitbrain.nodes.server.host.measurements import Measurements
from splitbrain.nodes.server.host.surroundings import Timers

Event = Callable[[], None]


class _Waiting(NamedTuple):
    event: Event
    #: When it came.
    since: Microseconds


class EventQueue:
    """Events that wait, and the turns in which they are handled."""

    def __init__(
        self, timers: Timers, measurements: Measurements, handled: Callable[[], None]
    ) -> None:
        """An empty queue; ``handled`` is called after each event, in its turn."""
        self._timers = timers
        self._measurements = measurements
        self._handled = handled
        self._waiting: deque[_Waiting] = deque()
        self._is_turn_due = False

    def __len__(self) -> int:
        """How many events wait."""
        return len(self._waiting)

    def add(self, event: Event) -> None:
        """Handle it after all that wait already."""
        self._waiting.append(_Waiting(event, self._timers.now()))
        self._ask_for_turn()

    def take_all(self) -> tuple[Event, ...]:
        """Return the events that wait, oldest first; they wait no more."""
        waiting, self._waiting = self._waiting, deque()
        return tuple([each.event for each in waiting])

    def _ask_for_turn(self) -> None:
        if not self._is_turn_due:
            self._is_turn_due = True
            self._timers.call_soon(self._work)

    def _work(self) -> None:
        """One event, and a further turn while there are more."""
        self._is_turn_due = False
        if not self._waiting:
            return
        event, since = self._waiting.popleft()
        began = self._timers.now()
        event()
        self._measurements.event_handled(began - since, self._timers.now() - began)
        if self._waiting:
            self._ask_for_turn()
        self._handled()
