"""Writes what a story of the nemesis has shown as text: a line for each thing, with its time.

Times are ms since the start of the load. Links stand as ``1>23``: from n1 to n2 and n3. What the
display is told of an event is left out where it is the event in the usual words.
"""

from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Any

import msgspec

from contracts.arms import ClockWarp, FileChange, Shape
from contracts.fault import ActualFault, Awaited, FaultEvent, Link, ScheduledFault
from harness.phases import Phase
from harness.progress import fault_sentence, phase_sentence, stamped_line
from tests.golden.nemesis_engine import Record
from tests.golden.nemesis_world import Called, DownChanged, Entry, Happened, Said
from tests.golden.story import LOAD_START_MS

#: Acts in a row that are told one by one.
_TOLD_MAX = 3
_Links = dict[tuple[Link, ...], int]


def rendered(record: Record) -> list[str]:
    """The story's title, its plan, and all that it has shown."""
    story = record.story
    lines = [f"## {story.name}: {story.sentence()}"]
    lines += [f"plan {planned_words(fault)}" for fault in story.schedule]
    links: _Links = {}
    #: Entries that the line before has told.
    skipped = 0
    for place, (time_us, entry) in enumerate(record.entries):
        if skipped:
            skipped -= 1
            continue
        if isinstance(entry, ActualFault):
            invoked, skipped = _invoked(entry, record.entries[place + 1 : place + 3])
            lines.append(f"{_ms(time_us)} {actual_words(entry)}{invoked}")
            links.setdefault(entry.links, entry.index)
            continue
        line = _line(entry, links)
        if (repeated := _repeated(record.entries[place:])) is not None:
            line, skipped = f"{line}{repeated[0]}", repeated[1]
        words = _usual_words(entry)
        if words is not None:
            usual = (time_us, Said(stamped_line(time_us / 1e6, words)))
            is_said = record.entries[place + 1 : place + 2] == [usual]
            skipped = int(is_said)
            line += "" if is_said else " (not said)"
        if isinstance(entry, FaultEvent | Phase) and entry.time != time_us * 1000:
            line += f" (stamped {_ms(entry.time // 1000)})"
        lines.append(f"{_ms(time_us)} {line}")
    over = f"{_ms(record.ended_us)} over{_left(record)}"
    # Most stories end so.
    last = lines.pop() if lines[-1].endswith(" do heal_all") else ""
    lines.append(f"{last}; {over}" if last else over)
    return lines


def _invoked(actual: ActualFault, behind: Sequence[tuple[int, Entry]]) -> tuple[str, int]:
    """What follows a line of the schedule: most often that very fault, invoked and said."""
    match behind:
        case [(time_us, FaultEvent(phase="invoked") as event), (_, Said(line))] if (
            event.time,
            event.index,
            event.nodes,
            event.links,
            event.leader,
        ) == (
            time_us * 1000,
            actual.index,
            actual.nodes,
            actual.links,
            actual.leader,
        ) and line == stamped_line(time_us / 1e6, fault_sentence(event)):
            return f"; invoked{f' | {event.evidence}' if event.evidence else ''}", 2
        case _:
            return "", 0


def _repeated(entries: Sequence[tuple[int, Entry]]) -> tuple[str, int] | None:
    """Of an act that is tried again and again at even intervals: how often, and until when."""
    first_us, act = entries[0]
    if not isinstance(act, Called) or entries[1:2] == [] or entries[1][1] != act:
        return None
    apart_us = entries[1][0] - first_us
    count = 1
    while entries[count : count + 1] == [(first_us + count * apart_us, act)]:
        count += 1
    if count <= _TOLD_MAX:
        return None
    last_us = first_us + (count - 1) * apart_us
    return f" {count} times, each {apart_us // 1000} ms, until {_ms(last_us)}", count - 1


def _left(record: Record) -> str:
    """What the run ends with, where that is not as it began."""
    parts: list[str] = []
    if record.raised is not None:
        parts.append(f"raised {type(record.raised).__name__}: {record.raised}")
    if record.failure is not None and record.failure is not record.raised:
        parts.append(f"failure {record.failure}")
    if record.is_interrupted:
        parts.append("interrupted")
    if record.down:
        parts.append(f"down {','.join(record.down)}")
    parts += [f"{node} {state}" for node, state in record.not_running.items()]
    parts += [f"{kind} {_places(places)}" for kind, places in record.bad.items()]
    return "".join(f"; {part}" for part in parts)


def _usual_words(entry: Entry) -> str | None:
    match entry:
        case FaultEvent():
            return fault_sentence(entry)
        case Phase():
            return phase_sentence(entry)
        case _:
            return None


def _line(entry: Entry, links: _Links) -> str:
    match entry:
        case FaultEvent():
            return _event(entry, links)
        case Called(act, arguments):
            return " ".join(["do", act, *(_argument(one, links) for one in arguments)])
        case DownChanged(may_be, nodes):
            return f"{'may be down' if may_be else 'back'} {','.join(nodes)}"
        case Said(line):
            return f"say {line.split('s  ', 1)[1]}"
        case Happened(happening):
            return f"* {' of '.join(filter(None, (happening.what, happening.node)))}"
        case _:
            return f"phase {fields_set(entry, but=('time',))}"


def _event(event: FaultEvent, links: _Links) -> str:
    words = [str(event.index), event.phase]
    words += [",".join(event.nodes)] if event.nodes else []
    if event.links and event.links not in links:
        words.append(compact(event.links))
    if event.evidence is not None:
        words.append(f"| {event.evidence}")
    return " ".join(words)


def planned_words(fault: ScheduledFault) -> str:
    """A fault of a schedule."""
    when = "" if fault.when is None else f" when {fields_set(fault.when)}"
    options = "" if not fault.options else f" {_json(fault.options)}"
    return (
        f"{fault.index} {fault.kind}:{fault.target} at {fault.at_ms} for {fault.duration_ms} "
        f"draw {fault.draw}{options}{when}"
    )


def actual_words(actual: ActualFault) -> str:
    """A fault as it was settled."""
    links = f" links {compact(actual.links)}" if actual.links else ""
    options = f" {_json(actual.options)}" if actual.options else ""
    return (
        f"{actual.index} is {actual.kind}:{actual.target} {','.join(actual.nodes)} led by "
        f"{actual.leader} draw {actual.draw}{links}{options}"
    )


def _argument(argument: Any, links: _Links) -> str:
    if isinstance(argument, Shape | ClockWarp | FileChange | Awaited):
        return fields_set(argument)
    if isinstance(argument, tuple):
        if argument in links and argument:
            return f"links of {links[argument]}"
        return _places(argument)
    return str(argument)


def _places(places: Iterable[Any]) -> str:
    there = list(places)
    is_links = bool(there) and isinstance(there[0], Link)
    return compact(there) if is_links else ",".join(map(str, there))


def compact(links: Sequence[Link]) -> str:
    """Links in their order, those of one source that follow each other together."""
    return " ".join(
        f"{source[1:]}>{''.join(link.destination[1:] for link in those)}"
        for source, those in groupby(links, key=lambda link: link.source)
    )


def fields_set(struct: msgspec.Struct, but: tuple[str, ...] = ()) -> str:
    """The fields of a record that are not as they usually are."""
    usual = {field.name: field.default for field in msgspec.structs.fields(struct)}
    return " ".join(
        f"{name}={value}"
        for name, value in msgspec.structs.asdict(struct).items()
        if name not in but and value != usual[name]
    )


def _json(options: dict[str, Any]) -> str:
    return msgspec.json.encode(options).decode()


def _ms(time_us: int) -> str:
    since = time_us - LOAD_START_MS * 1000
    whole, rest = divmod(since, 1000)
    return str(whole) if not rest else f"{since / 1000:.3f}"
