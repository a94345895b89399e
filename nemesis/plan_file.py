"""Plan files: a schedule in the user's own words, or what to draw one from.

TOML (or JSON), one of two forms, told apart by the key that is there::

    [[faults]]                          nemesis = "partition,kill:leader"
    kind = "partition"                  [pace]
    target = "leader"                   overlap = 2
    at_ms = 3000                        [options.partition]
    duration_ms = 5000                  beside = 1

``docs/faults/plans.md`` has all keys. Errors name the line. A plan file may carry settings for the
systems that it is made for.
"""

import re
import tomllib
from collections.abc import Sequence
from typing import Any, Final

import msgspec

from splitbrain.contracts.errors import UsageError
from splitbrain.contracts.fault import (
    US_PER_MS,
    Awaited,
    Fault,
    Microseconds,
    Milliseconds,
    in_ms,
    in_us,
)
from splitbrain.contracts.names import NodeName
from splitbrain.contracts.nearest import or_nearest
from splitbrain.history.json_problems import in_words
from splitbrain.nemesis.awaiting import ANYWHERE, RECOVERED, check_awaited
from splitbrain.nemesis.fault_kind import FaultKind
from splitbrain.nemesis.fault_options import BEYOND_PROMISE, read_options
from splitbrain.nemesis.kinds import fault_kind
from splitbrain.nemesis.plan import NONE, Pace, check_nodes, parse, refuse_target
from splitbrain.nemesis.targets import THERE, canonical, check_pinned, check_target

_PLAN_HOLDS: Final = 'It holds "faults", a list of objects with kind, target, at_ms and duration_ms'
#: A week, as the longest time limit.
_TIME_MS_MAX: Final = 7 * 24 * 3600 * 1000
_UNKNOWN = re.compile(r"Object contains unknown field `([^`]*)`(?: - at `\$?\.?([^`]*)`)?")
_PLACE = re.compile(r" - at `\$?\.?([^`]*)`")


class FileAwaited(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The happening that a fault waits for, as a plan file writes it."""

    on: str
    node: str = ANYWHERE
    epoch: int | None = None
    count: int = 1
    delay_ms: float = 0
    #: From the fault's ``at_ms`` on.
    timeout_ms: float = 30_000

    def awaited(self) -> Awaited:
        """Return the same for a plan."""
        return Awaited(
            self.on, self.node, self.epoch, self.count, in_us(self.delay_ms), in_us(self.timeout_ms)
        )


class FileFault(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One fault as a plan file writes it."""

    kind: str
    target: str
    #: Needed unless it waits; then the time from which on it does.
    at_ms: float | None = None
    duration_ms: float = 5000
    draw: int = 0
    options: dict[str, Any] = {}
    when: FileAwaited | None = None

    @property
    def waits_for_node(self) -> bool:
        """As of the ``Fault`` that it becomes."""
        return self.when is not None and self.when.on != RECOVERED


class PlanFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Content of a plan file."""

    faults: tuple[FileFault, ...] = ()
    #: System to its own settings by its own names; in force where the user gives none.
    settings: dict[str, dict[str, str]] = {}
    #: As ``--nemesis`` takes it; the schedule is drawn from it.
    nemesis: str | None = None
    pace: Pace = Pace()
    #: Kind to options of its drawn faults.
    options: dict[str, dict[str, Any]] = {}
    #: How many of ``faults`` may be in force at once.
    overlap: int = 1
    #: Whether faults may go beyond what a system can promise to survive.
    beyond_promise: bool = False


def file_awaited(when: Awaited) -> FileAwaited:
    """Return the happening that a fault of a plan waits for, as a plan file writes it."""
    timeout_us = _TIME_MS_MAX * US_PER_MS if when.timeout_us is None else when.timeout_us
    return FileAwaited(
        when.on, when.node, when.epoch, when.count, in_ms(when.delay_us), in_ms(timeout_us)
    )


class ReadPlan(msgspec.Struct, frozen=True):
    """A plan file that was read, and where each of its faults stands."""

    plan: PlanFile
    #: As errors name them.
    places: tuple[str, ...] = ()


def parse_plan_file(content: bytes, name: str) -> ReadPlan:
    """Read a plan file.

    Args:
        content: of the file.
        name: of the file; its ending, ``.json`` or ``.toml``, tells the notation.

    Raises:
        UsageError: it is no plan file; names the line.
    """
    is_toml = name.endswith(".toml")
    text = ""
    try:
        text = content.decode("utf-8")
        if is_toml:
            plan = msgspec.convert(tomllib.loads(text), PlanFile)
        else:
            plan = msgspec.json.decode(text, type=PlanFile)
    except (ValueError, RecursionError) as error:
        raise UsageError(*_refusal(error, name, text if is_toml else "")) from error
    if not plan.faults and plan.nemesis is None:
        raise UsageError(
            f"the plan file {name} cannot be read: it has no field 'faults'", _PLAN_HOLDS
        )
    if plan.faults and plan.nemesis is not None:
        raise UsageError(
            f"the plan file {name} has both faults and a nemesis",
            "Write either [[faults]], the schedule itself, or nemesis, what to draw it from",
        )
    if plan.faults and (plan.pace != Pace() or plan.options):
        raise UsageError(
            f"the plan file {name} has a pace or options of kinds, and its faults are not drawn",
            "Leave [pace] and [options] out, and say of each of [[faults]] when it strikes and how",
        )
    headers = _lines_of(text, "[[faults]]") if is_toml else []
    places = tuple(
        f"{name} line {headers[number]}: " if number < len(headers) else ""
        for number in range(len(plan.faults))
    )
    return ReadPlan(plan, places)


def from_file_faults(
    faults: Sequence[FileFault],
    nodes: Sequence[NodeName],
    time_limit_ms: Milliseconds,
    *,
    overlap: int = 1,
    beyond_promise: bool = False,
    places: Sequence[str] = (),
    observers: Sequence[NodeName] = (),
) -> tuple[Fault, ...]:
    """Return a schedule of these faults, which must fit into the time limit.

    Args:
        faults: in any order.
        nodes: of the cluster, those that vote.
        time_limit_ms: of the load.
        overlap: how many may be in force at once; those that wait are not counted.
        beyond_promise: whether they may go beyond what a system can promise to survive.
        places: where each of them stands, to be put before what is wrong with it.
        observers: the other nodes; only faults that name them hit them.

    Raises:
        UsageError: a kind, target or option does not exist, too many faults overlap, or one ends
            too late.
    """
    scheduled: list[Fault] = []
    ends_us: list[Microseconds] = []
    order = sorted(range(len(faults)), key=lambda number: faults[number].at_ms or 0)
    for index, number in enumerate(order):
        fault = faults[number]
        try:
            made = _scheduled(index, fault, (nodes, observers), ends_us, overlap, time_limit_ms)
        except UsageError as error:
            place = places[number] if number < len(places) else ""
            raise UsageError(place + error.problem, error.next_step) from error
        if beyond_promise:
            made = msgspec.structs.replace(made, options={**made.options, BEYOND_PROMISE: True})
        scheduled.append(made)
        if fault.when is None:
            ends_us.append(made.at_us + made.duration_us)
    return tuple(scheduled)


def with_options(schedule: Sequence[Fault], plan: PlanFile, name: str) -> tuple[Fault, ...]:
    """Return a drawn schedule with the options that the plan file gives its kinds.

    Raises:
        UsageError: an option does not exist, or is of a kind that the plan does not draw.
    """
    drawn = [wanted.kind for wanted in parse(plan.nemesis or NONE)]
    for kind_name, options in plan.options.items():
        if kind_name not in drawn:
            raise UsageError(
                f"{name} has options of {kind_name!r}, which the plan does not draw",
                or_nearest(kind_name, drawn, "plan's faults"),
            )
        read_options(kind_name, fault_kind(kind_name).options, options)
    beyond = {BEYOND_PROMISE: True} if plan.beyond_promise else {}
    return tuple(
        msgspec.structs.replace(fault, options={**plan.options.get(fault.kind, {}), **beyond})
        for fault in schedule
    )


def _scheduled(
    index: int,
    fault: FileFault,
    cluster: tuple[Sequence[NodeName], Sequence[NodeName]],
    ends_us: Sequence[Microseconds],
    overlap: int,
    time_limit_ms: Milliseconds,
) -> Fault:
    """``cluster``: those that vote, and the others."""
    kind = fault_kind(fault.kind)
    target = canonical(fault.target)
    _check_target(kind, target, fault, *cluster)
    nodes = (*cluster[0], *cluster[1])
    if fault.at_ms is None and not fault.waits_for_node:
        problem = "says neither when to strike nor what to wait for"
        if fault.when is not None:
            problem = "does not say when to strike at the earliest"
        next_step = "Give it an at_ms, or a when" if fault.when is None else "Give it an at_ms"
        raise UsageError(f"a fault {fault.kind!r} {problem}", next_step)
    _check_window(fault, () if fault.waits_for_node else ends_us, overlap)
    when = None if fault.when is None else fault.when.awaited()
    if when is not None:
        check_awaited(when, nodes)
    check_pinned(fault.options, nodes)
    read_options(kind.name, kind.options, fault.options)
    at_us, duration_us = in_us(fault.at_ms or 0), in_us(fault.duration_ms)
    end_us = at_us + duration_us
    if end_us > time_limit_ms * US_PER_MS:
        raise UsageError(
            f"the fault at {in_ms(at_us)} ms ends after the time limit of {time_limit_ms} ms",
            f"Choose a --time-limit of at least {in_ms(end_us) / 1000:.10g}",
        )
    return Fault(
        index=index,
        kind=fault.kind,
        target=target,
        at_us=at_us,
        duration_us=duration_us,
        draw=fault.draw,
        options=fault.options,
        when=when,
    )


def _check_target(
    kind: FaultKind,
    target: str,
    fault: FileFault,
    nodes: Sequence[NodeName],
    observers: Sequence[NodeName],
) -> None:
    check_nodes(kind, nodes)
    if target == THERE:
        if not fault.waits_for_node:
            raise UsageError(
                f"a fault {kind.name!r} strikes {THERE!r}, and waits for nothing at any node",
                "Have it wait for what a node does, or name another target",
            )
        return
    check_target(target, nodes, leave_one=kind.leaves_one, observers=observers)
    refuse_target(kind, target)


def _check_window(fault: FileFault, ends_us: Sequence[Microseconds], overlap: int) -> None:
    """Refuse a window that cannot be, or in which too many others are in force."""
    at_ms = 0 if fault.at_ms is None else fault.at_ms
    when = fault.when or FileAwaited("")
    times = {
        "at_ms": at_ms,
        "duration_ms": fault.duration_ms,
        "delay_ms": when.delay_ms,
        "timeout_ms": when.timeout_ms,
    }
    for name, value in times.items():
        if not abs(value) <= _TIME_MS_MAX:
            raise UsageError(
                f"a fault {fault.kind!r} has {name} = {value}",
                f"Choose at most {_TIME_MS_MAX:,.0f}, a week",
            )
    at_us, duration_us = in_us(at_ms), in_us(fault.duration_ms)
    place = f"the fault at {in_ms(at_us)} ms"
    if at_us < 0:
        raise UsageError(f"{place} begins before the load", "Give it an at_ms of at least 0")
    if duration_us <= 0:
        raise UsageError(
            f"{place} lasts {in_ms(duration_us)} ms", "Give it a duration_ms of at least 1"
        )
    if fault.draw < 0:
        raise UsageError(f"{place} has the draw {fault.draw}", "Give it a draw of at least 0")
    in_force = [end_us for end_us in ends_us if end_us > at_us]
    if len(in_force) >= overlap:
        raise UsageError(
            f"{place} begins before the one before it is over at {in_ms(max(in_force))} ms",
            f"Give each fault a window of its own, or let the plan have overlap = {overlap + 1}",
        )


def _refusal(error: Exception, name: str, toml: str) -> tuple[str, str]:
    """Return the problem of a file, with the line where it is known, and the next step."""
    next_step = _PLAN_HOLDS
    if isinstance(error, tomllib.TOMLDecodeError):
        return f"the plan file {name} cannot be read: it is not valid TOML: {error}", next_step
    said = str(error)
    place = _PLACE.search(said)
    path = place[1] if place else ""
    unknown = _UNKNOWN.fullmatch(said)
    if unknown is not None:
        path = ".".join(part for part in (unknown[2], unknown[1]) if part)
        next_step = or_nearest(unknown[1], _fields_at(unknown[2] or ""), "fields")
        if not unknown[2] and unknown[1] in Pace.__struct_fields__:
            next_step = f"{unknown[1]} belongs to the plan's 'pace'"
    line = line_of(toml, path) if toml else None
    # An optional field is told as a type that may be null, which TOML has not.
    words = in_words(error).replace(" or null", "")
    where = name if line is None else f"{name}, line {line},"
    return f"the plan file {where} cannot be read: {words}", next_step


def _fields_at(path: str) -> tuple[str, ...]:
    """Names of the fields that the object at this place of a plan file may have."""
    if path.endswith("when"):
        return FileAwaited.__struct_fields__
    if path.startswith("faults"):
        return FileFault.__struct_fields__
    if path.startswith("pace"):
        return Pace.__struct_fields__
    return PlanFile.__struct_fields__


def line_of(toml: str, path: str) -> int | None:
    """The line, from 1, at which a value of a TOML document stands; None where it is not found.

    Args:
        toml: a document whose tables are headed ``[name]`` and ``[[name]]``.
        path: such as ``faults[2].options.loss``.
    """
    found: int | None = None
    first, last, names = 1, len(toml.splitlines()), path.split(".")
    for name in names:
        key, _, index = name.rstrip("]").partition("[")
        if index:
            lines = _lines_of(toml, f"[[{key}]]")
            if int(index) >= len(lines):
                break
            first = found = lines[int(index)]
            last = next(iter(lines[int(index) + 1 :]), last + 1) - 1
            continue
        heads = re.compile(rf"\s*(?:\[+[^\]]*\b{re.escape(key)}\]+|\"?{re.escape(key)}\"?\s*[=.])")
        inline = re.compile(rf".*[{{,\s]\"?{re.escape(key)}\"?\s*=")
        numbered = list(enumerate(toml.splitlines(), start=1))[first - 1 : last]
        at = next((number for number, line in numbered if heads.match(line)), None)
        at = at or next((number for number, line in numbered if inline.match(line)), None)
        if at is None:
            break
        first = found = at
    return found


def _lines_of(toml: str, header: str) -> list[int]:
    return [
        number
        for number, line in enumerate(toml.splitlines(), start=1)
        if "".join(line.partition("#")[0].split()) == header
    ]
