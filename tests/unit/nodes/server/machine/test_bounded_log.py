"""A log that others cannot fill, and that says what it left out."""

from collections.abc import Callable
from typing import Any

from splitbrain.nodes.quorum.identifiers import Microseconds
from splitbrain.nodes.server.host.surroundings import Level
from splitbrain.nodes.server.machine.log_lines import (
    FACT_LETTERS_MAX,
    WARNINGS_COUNT_MAX,
    BoundedLog,
)
from tests.unit.nodes.server.hand_made_world import Handle


class Lines:
    """A log and the clock beside it."""

    def __init__(self) -> None:
        self.lines: list[tuple[str, dict[str, Any]]] = []
        self.armed: list[Handle] = []

    def write(self, level: Level, message: str, **fields: Any) -> None:
        self.lines.append((message, fields))

    def now(self) -> Microseconds:
        raise AssertionError("no time is asked for")

    def wall_clock_ms(self) -> int:
        raise AssertionError("no time is asked for")

    def call_soon(self, action: Callable[[], None]) -> None:
        raise AssertionError("nothing is soon")

    def call_later(self, delay_us: int, action: Callable[[], None]) -> Handle:
        self.armed.append(Handle(delay_us, action))
        return self.armed[-1]

    def ring(self) -> None:
        due, self.armed = self.armed, []
        for handle in due:
            if handle.action is not None:
                handle.action()


def test_a_flood_of_warnings_is_counted_and_the_count_is_told() -> None:
    lines = Lines()
    log = BoundedLog(lines, lines)
    for number in range(1_000):
        log.write("warning", "client refused", reason=f"reason {number}")
    log.write("warning", "connection refused", reason="another kind")
    assert len(lines.lines) == WARNINGS_COUNT_MAX + 1
    lines.ring()
    facts = {"of": "client refused", "count": 1_000 - WARNINGS_COUNT_MAX}
    assert lines.lines[-1] == ("warnings not logged", facts)
    log.write("warning", "client refused", reason="in the next while")
    assert lines.lines[-1] == ("client refused", {"reason": "in the next while"})
    before = len(lines.lines)
    lines.ring()
    assert len(lines.lines) == before


def test_what_a_node_says_of_itself_is_never_left_out() -> None:
    lines = Lines()
    log = BoundedLog(lines, lines)
    for number in range(100):
        log.write("info", "role", epoch=number)
        log.write("error", "fatal", reason="x" * 10_000)
    assert len(lines.lines) == 200
    assert lines.lines[-1] == ("fatal", {"reason": "x" * 10_000})


def test_a_warning_quotes_a_stranger_but_not_at_any_length() -> None:
    lines = Lines()
    BoundedLog(lines, lines).write("warning", "client refused", reason="x" * 1_000_000, peer=2)
    ((_, fields),) = lines.lines
    assert fields == {"reason": "x" * FACT_LETTERS_MAX + "... (1000000 letters)", "peer": 2}


def test_what_was_not_logged_is_told_at_the_end_of_the_node_too() -> None:
    lines = Lines()
    log = BoundedLog(lines, lines)
    for _ in range(WARNINGS_COUNT_MAX + 3):
        log.write("warning", "client refused", reason="again")
    log.sum_up()
    assert lines.lines[-1] == ("warnings not logged", {"of": "client refused", "count": 3})
    before = len(lines.lines)
    lines.ring()
    assert len(lines.lines) == before
