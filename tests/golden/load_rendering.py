"""Writes what a story of the load has shown as text: a line for each thing, with its time in ms."""

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any

import msgspec

from splitbrain.contracts.operations import Completion, Operation
from splitbrain.history.records import Event
from tests.golden.load_engine import ClientEnded, Entry, LoadRecord, Opened, Told
from tests.golden.load_story import LOAD, LoadStory


def rendered_load(record: LoadRecord) -> list[str]:
    """The story's title, and all that it has shown."""
    story = record.story
    lines = [f"## {story.name}", *_world(story)]
    before: Entry | None = None
    for time_us, entry in _in_one_order(record.entries):
        if isinstance(entry, Told) and _is_usual(entry.completion, before):
            lines[-1] += f"; told {entry.slot}.{entry.n}"
        else:
            lines.append(f"{_ms(time_us)} {_line(entry, time_us)}")
        before = entry
    counts = record.counts
    by_node = " ".join(f"{node}={count}" for node, count in sorted(counts.ok_by_node.items()))
    lines.append(f"counted ok={counts.ok} fail={counts.fail} info={counts.info} {by_node}".strip())
    lines.append(f"next processes {','.join(map(str, record.upcoming))}")
    if record.failure is not None:
        lines.append(f"failure {record.failure}")
    return lines


def rendered_operation(operation: Operation) -> str:
    """An operation in a few letters."""
    value = "" if operation.value is None else f"={json_of(operation.value)}"
    return f"{operation.f} {operation.key}{value}"


def json_of(value: Any) -> str:
    """A value of an operation as the history holds it."""
    return msgspec.json.encode(value).decode()


def _in_one_order(entries: Sequence[tuple[int, Entry]]) -> Iterator[tuple[int, Entry]]:
    """The entries; clients that are closed at one moment by their numbers.

    At the end of the load those that sleep are woken in no order: ``Clients`` keeps them in a set.
    """

    def moment(numbered: tuple[int, tuple[int, Entry]]) -> tuple[int, int]:
        place, (time_us, entry) = numbered
        is_closed = isinstance(entry, ClientEnded) and entry.how == "closed"
        return time_us, -1 if is_closed else place

    for (_, place), those in groupby(enumerate(entries), key=moment):
        found = [entry for _, entry in those]
        yield from found if place >= 0 else sorted(found, key=_client_number)


def _client_number(entry: tuple[int, Any]) -> int:
    return entry[1].number


def _ms(time_us: int) -> str:
    whole, rest = divmod(time_us, 1000)
    return f"{whole}.{rest:03}" if rest else str(whole)


def _world(story: LoadStory) -> list[str]:
    """The load and the answers, where they are not the usual ones."""
    words = [
        f"{name}={value}"
        for name, value in msgspec.structs.asdict(story.load).items()
        if value != getattr(LOAD, name)
    ]
    usual = {field.name: field.default for field in msgspec.structs.fields(LoadStory)}
    shown = ("workload", "workload_options", "seed", "observers", "slots", "closing_ms")
    shown += ("interrupt_ms", "start_ms")
    words += [
        f"{name}={json_of(getattr(story, name))}"
        for name in shown
        if getattr(story, name) not in (usual[name], {}, ())
    ]
    lines = [f"load {' '.join(words)}"] if words else []
    answers = [(".".join(map(str, place)), answer) for place, answer in story.answers.items()]
    answers += [(f"slot {slot}", answer) for slot, answer in story.slot_answers.items()]
    answers += [(" ".join(map(str, at)), answer) for at, answer in story.final_answers.items()]
    if story.usual != usual["usual"]:
        answers.append(("all others", story.usual))
    by_answer: dict[str, list[str]] = {}
    for place, answer in answers:
        by_answer.setdefault(_answer(answer), []).append(place)
    return lines + [f"answer {', '.join(those)}: {words}" for words, those in by_answer.items()]


def _answer(answer: Any) -> str:
    late = "" if answer.late_ms is None else f", late by {answer.late_ms} ms"
    after = "" if answer.type == "never" else f" after {answer.after_ms:g} ms"
    return " ".join(filter(None, (answer.type + after, answer.error, answer.node))) + late


def _is_usual(completion: Completion, before: Entry | None) -> bool:
    """Whether the workload was told, right then, just what the history holds."""
    if not isinstance(before, Event):
        return False
    is_value = before.type != "ok" or before.value == completion.value
    same = (before.type, before.error) == (completion.type, completion.error)
    return same and is_value and before.position == completion.position


def _line(entry: Entry, time_us: int) -> str:
    match entry:
        case Event():
            return _event(entry, time_us)
        case Opened(number, route):
            return f"open c{number} {route.kind} {route.node}"
        case ClientEnded(number, how):
            return f"{how} c{number}"
        case Told(slot, n, completion):
            return f"told {slot}.{n} {_completion(completion)}"
        case _:
            return entry.words


def _event(event: Event, time_us: int) -> str:
    words = [f"#{event.index} p{event.process} {event.type} {event.f} {event.key}"]
    words += [] if event.value is None else [json_of(event.value)]
    words += [event.node or "(no node)"]
    words += [] if event.error is None else [f"error={event.error}"]
    words += [] if event.position is None else [f"at {json_of(event.position)}"]
    words += ["final"] * event.final
    words += [] if event.time == time_us * 1000 else [f"(stamped {event.time})"]
    return " ".join(words)


def _completion(completion: Completion) -> str:
    return " ".join(
        f"{name}={value}"
        for name, value in msgspec.structs.asdict(completion).items()
        if value is not None
    )
