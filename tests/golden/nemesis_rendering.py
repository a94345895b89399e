"""Writes what a story of the nemesis has shown as text: a line for each thing, with its time.

Times are ms since the start of the load. Links stand as ``1>23``: from n1 to n2 and n3. Words that
the display is told of an event are left out where they are the usual ones, and some phrases of the
evidence are shortened (``_SHORT``).
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby, zip_longest
from typing import Any

import msgspec

from splitbrain.contracts.arms import ClockWarp, FileChange, Shape
from splitbrain.contracts.fault import ActualFault, Awaited, Fault, FaultEvent, Link
from splitbrain.harness.run.progress import fault_sentence, phase_sentence, stamped_line
from splitbrain.history.course import Phase
from splitbrain.nemesis.plan_file import file_awaited, in_ms
from tests.golden.nemesis_engine import Record
from tests.golden.nemesis_world import Called, DownChanged, Entry, Happened, Said
from tests.golden.story import LOAD_START_MS

#: Acts in a row that are told one by one.
_TOLD_MAX = 3
#: Entries that one line may tell.
_AHEAD_MAX = 60
#: Phrases that come again and again, and what stands for them here; others stand as they are.
_SHORT = (
    (
        (
            r"(\d+) operations? acknowledged from the call to inject until the healing, "
            r"(\d+) by its nodes"
        ),
        r"acks \1/\2",
    ),
    (r"an operation acknowledged after", "ack after"),
    (r"(n\d) takes in records from its peers", r"\1 flows"),
    (r"(n\d) takes in nothing from its peers", r"\1 stalls"),
    (r"(n\d) to (n\d): 40 of 40 arrived, 0 twice, 0 out of order", r"\1 to \2: all 40"),
)


class _Seen(msgspec.Struct):
    """Things to which a story's lines may refer."""

    planned: dict[int, Fault]
    actual: dict[int, ActualFault] = {}
    #: Links of faults, to the first fault that has them.
    links: dict[tuple[Link, ...], int] = {}


def rendered(record: Record) -> list[str]:
    """The story's title with its plan, and all that it has shown."""
    story = record.story
    plan = "; ".join(planned_words(fault) for fault in story.schedule)
    seen = _Seen({fault.index: fault for fault in story.schedule})
    lines: list[tuple[str, str]] = []
    place = 0
    while place < len(record.entries):
        line, count = _told(record.entries[place : place + _AHEAD_MAX], seen)
        lines.append((_ms(record.entries[place][0]), line))
        place += count
    lines.append((_ms(record.ended_us), f"over{_left(record)}"))
    return [f"## {story.name}: {story.sentence()}: {plan}", *_joined(lines)]


def _told(entries: Sequence[tuple[int, Entry]], seen: _Seen) -> tuple[str, int]:
    """A line for the first of these entries, and how many of them it tells."""
    time_us, entry = entries[0]
    if isinstance(entry, ActualFault):
        seen.actual[entry.index] = entry
        seen.links.setdefault(entry.links, entry.index)
        invoked, count = _invoked(entries)
        return f"{actual_words(entry)}{invoked}", count
    line = _line(entry, seen)
    repeated, count = _repeated(entries)
    if isinstance(entry, FaultEvent | Phase):
        if entry.time != time_us * 1000:
            line += f" (stamped {_ms(entry.time // 1000)})"
        count = 2 if _is_said(entries) else 1
        line += "" if count == 2 else " (not said)"
    return line + repeated, count


def _joined(lines: list[tuple[str, str]]) -> Iterator[str]:
    """The lines with their times; what nearly always belongs together in one of them."""
    held = ""
    for (at, line), (_, behind) in zip_longest(lines, lines[1:], fillvalue=("", "")):
        is_held = (
            (line.startswith("say ") and behind[1:4] == " is")
            or (line.startswith("may be down ") and behind.startswith("do "))
            or (line == "do heal_all" and behind.startswith("over"))
        )
        if is_held:
            held += f"{at} {line}; "
        else:
            yield f"{held}{at} {line}"
            held = ""


def _invoked(entries: Sequence[tuple[int, Entry]]) -> tuple[str, int]:
    """The entries behind a line of the schedule: most often that very fault, invoked and said."""
    match entries[:3]:
        case [(_, ActualFault() as actual), (time_us, FaultEvent(phase="invoked") as event), _] if (
            _is_said(entries[1:])
            and (event.time, event.index) == (time_us * 1000, actual.index)
            and (event.kind, event.target) == (actual.kind, actual.target)
            and (event.nodes, event.links, event.leader)
            == (actual.nodes, actual.links, actual.leader)
        ):
            return f"; invoked{f' | {event.evidence}' if event.evidence else ''}", 3
        case _:
            return "", 1


def _is_said(entries: Sequence[tuple[int, Entry]]) -> bool:
    """Whether the display is told of a thing at once, and in the usual words."""
    time_us, entry = entries[0]
    words = phase_sentence(entry) if isinstance(entry, Phase) else ""
    if isinstance(entry, FaultEvent):
        words = fault_sentence(entry)
    return list(entries[1:2]) == [(time_us, Said(stamped_line(time_us / 1e6, words)))]


def _repeated(entries: Sequence[tuple[int, Entry]]) -> tuple[str, int]:
    """Of an act that is tried again and again at even intervals: how often, and until when."""
    first_us, act = entries[0]
    if not isinstance(act, Called) or [other for _, other in entries[1:2]] != [act]:
        return "", 1
    apart_us = entries[1][0] - first_us
    count = 1
    while list(entries[count : count + 1]) == [(first_us + count * apart_us, act)]:
        count += 1
    if count <= _TOLD_MAX:
        return "", 1
    last_us = first_us + (count - 1) * apart_us
    return f" {count} times, each {apart_us // 1000} ms, until {_ms(last_us)}", count


def _left(record: Record) -> str:
    """The state at the end, where that is not as it began."""
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


def _line(entry: Entry, seen: _Seen) -> str:
    match entry:
        case FaultEvent():
            return _event(entry, seen)
        case Called(act, arguments):
            return " ".join(["do", act, *(_argument(one, seen.links) for one in arguments)])
        case DownChanged(may_be, nodes):
            return f"{'may be down' if may_be else 'back'} {','.join(nodes)}"
        case Said(line):
            return f"say {line.split('s  ', 1)[1]}"
        case Happened(happening):
            return f"* {' of '.join(filter(None, (happening.what, happening.node)))}"
        case _:
            return f"phase {fields_set(entry, but=('time',))}"


def _event(event: FaultEvent, seen: _Seen) -> str:
    """An event; of what its fault became only what is other than there."""
    planned, actual = seen.planned[event.index], seen.actual.get(event.index)
    words = [str(event.index), event.phase]
    words += [",".join(event.nodes)] if event.nodes else []
    if (event.kind, event.target) != (planned.kind, planned.target):
        words.append(f"{event.kind}:{event.target}")
    if event.links != (() if actual is None else actual.links):
        words.append(f"links {compact(event.links)}")
    if event.leader != (None if actual is None else actual.leader):
        words.append(f"led by {event.leader}")
    if event.evidence is not None:
        words.append(f"| {_in_short(event.evidence)}")
    return " ".join(words)


def _in_short(evidence: str) -> str:
    for phrase, short in _SHORT:
        evidence = re.sub(phrase, short, evidence)
    return evidence


def planned_words(fault: Fault) -> str:
    """A fault of a schedule."""
    when = "" if fault.when is None else f" when {fields_set(file_awaited(fault.when))}"
    options = "" if not fault.options else f" {_json(fault.options)}"
    at_ms, lasts_ms = in_ms(fault.at_us), in_ms(fault.duration_us)
    return (
        f"{fault.index} {fault.kind}:{fault.target} at {at_ms} for {lasts_ms} "
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


def _argument(argument: Any, links: dict[tuple[Link, ...], int]) -> str:
    if isinstance(argument, Awaited):
        return fields_set(file_awaited(argument))
    if isinstance(argument, Shape | ClockWarp | FileChange):
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
