"""A checker's violations as the page shows them: sentence, pictures, details. Pure.

Knows the shapes of the project's checkers (a ``core`` and a ``graph`` of operations, ``operations``
by their indexes) and shows any other violation by its sentence and its data.
"""

import json
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from operator import attrgetter
from typing import Any, cast

import msgspec
from markupsafe import Markup

from splitbrain.checker.anomalies.names import name_of
from splitbrain.checker.verdict import CheckResult
from splitbrain.harness.console.plain_text import printable
from splitbrain.harness.report.graph_picture import draw_graph, essence
from splitbrain.harness.report.last_messages import LastMessages
from splitbrain.harness.report.node_lines import LinesAround
from splitbrain.harness.report.operations_picture import (
    Picture,
    choose,
    draw,
    finish,
    label_of,
)
from splitbrain.history.records import PairedOperation

#: Violations explained per checker; the rest is counted.
EXPLAINED_MAX = 3
#: Violations that the interactive view of operations has; the others have their still picture.
VIEWS_MAX = 3
#: Operations listed and outlined in the view.
CORE_MAX = 100
OUTLINED_MAX = 12
_DETAILS_CHARACTERS_MAX = 12_000
_TEXT_LINES_MAX = 60


class ViolatedOperation(msgspec.Struct, frozen=True):
    """One of the operations that contradict each other, as a row of a table."""

    index: int
    label: str
    #: Process, and its node where the operation had one.
    process: str
    invoked: str
    answered: str


class Surroundings(msgspec.Struct, frozen=True):
    """Readers of what was recorded around a moment, ns since the run's start."""

    messages: Callable[[int], LastMessages | None] = lambda _moment: None
    lines: Callable[[int], LinesAround | None] = lambda _moment: None


class ShownViolation(msgspec.Struct, frozen=True):
    """One violation, ready for the template."""

    #: Number on the page, from 1.
    number: int
    checker: str
    #: Name of the anomaly.
    name: str
    #: Account of what happened; empty where the sentence is all there is.
    account: str
    sentence: str
    #: The operations that contradict each other, the one without a place first.
    operations: list[ViolatedOperation]
    #: Bars per process; None where the violation names no operations.
    picture: Picture | None
    #: Its place in the interactive view; None where it has none.
    view: int | None
    messages: LastMessages | None
    logs: LinesAround | None
    #: Whether it is the first of its checker, and so shown at once.
    first: bool
    #: Operations in the picture and how many of them are outlined.
    drawn: int
    core: int
    #: The graph of contradicting operations; empty where there is none.
    graph: Markup
    lines: list[str]
    #: The violation's own data as JSON, cut.
    details: str
    #: Violations of the same checker that are not shown; on the last shown one only.
    more: int


def explained_violations(
    checkers: Iterable[CheckResult],
) -> Iterator[tuple[CheckResult, int, dict[str, Any]]]:
    """Yield the violations that a page explains, each with its number within its checker."""
    for result in checkers:
        for number, violation in enumerate(result.violations[:EXPLAINED_MAX]):
            yield result, number, violation


def show_violations(
    operations: Sequence[PairedOperation],
    checkers: Iterable[CheckResult],
    around: Surroundings | None = None,
) -> list[ShownViolation]:
    """Return the first violations of every checker, in the order of the checkers."""
    around = around or Surroundings()
    shown: list[ShownViolation] = []
    views = 0
    for result, number, violation in explained_violations(checkers):
        item = _show(result, number, violation, operations, len(shown) + 1, around)
        if item.operations and views < VIEWS_MAX:
            item = msgspec.structs.replace(item, view=views)
            views += 1
        shown.append(item)
    return shown


def _show(
    result: CheckResult,
    place: int,
    violation: Mapping[str, Any],
    operations: Sequence[PairedOperation],
    number: int,
    around: Surroundings,
) -> ShownViolation:
    checker = result.checker
    core = outlined(violation, operations)
    moment = moment_of(violation)
    if moment is None and core and is_timed(operations):
        moment = max(map(finish, core))
    last = place == min(len(result.violations), EXPLAINED_MAX) - 1
    key = core[0].key if core else None
    # Of a cycle of transactions the others around it say nothing.
    drawn = choose(() if "edges" in violation else operations, core, key)
    culprit = core[0].index if core else None
    graph = _mapping(violation.get("graph"))
    return ShownViolation(
        number=number,
        checker=checker,
        name=name_of(checker, violation),
        account=str(violation.get("account", "")),
        sentence=str(violation.get("sentence", "")),
        operations=_rows(core_operations(violation, operations)[:CORE_MAX], is_timed(operations)),
        picture=draw(drawn, frozenset(operation.index for operation in core), culprit),
        view=None,
        messages=None if moment is None else around.messages(moment),
        logs=None if moment is None else around.lines(moment),
        first=place == 0,
        drawn=len(drawn),
        core=len(core),
        graph=draw_graph(graph, f"v{number}") if graph else Markup(),
        lines=_lines(violation.get("text")),
        details=_details(violation),
        more=max(0, len(result.violations) - EXPLAINED_MAX) if last else 0,
    )


def _rows(core: Sequence[PairedOperation], timed: bool) -> list[ViolatedOperation]:
    def words(moment: int) -> str:
        return f"{moment / 1e9:,.6f} s" if timed else f"event {moment:,}"

    return [
        ViolatedOperation(
            index=operation.index,
            label=label_of(operation),
            process=f"process {operation.process}"
            + (f" · {printable(operation.node)}" if operation.node else ""),
            invoked=words(operation.start),
            answered="never answered" if operation.end is None else words(operation.end),
        )
        for operation in core
    ]


def is_timed(operations: Iterable[PairedOperation]) -> bool:
    """Return whether the history has times; without them its order stands in."""
    return any(operation.start != operation.index for operation in operations)


def moment_of(violation: Mapping[str, Any]) -> int | None:
    """Return when it was seen, ns since the run's start: at the end of its operation, if ever."""
    operation = _mapping(violation.get("operation"))
    candidates = (operation.get("end"), operation.get("start"), violation.get("time"))
    return next((time for time in candidates if isinstance(time, int) and time >= 0), None)


def explaining_overlaps(checkers: Iterable[CheckResult]) -> Iterator[list[dict[str, Any]]]:
    """Yield the overlaps of two reigns, the older one first, that are part of a violation."""
    for result in checkers:
        for violation in result.violations:
            overlap = violation.get("overlap")
            if isinstance(overlap, list) and len(cast("list[Any]", overlap)) == 2:
                yield cast("list[dict[str, Any]]", overlap)


def core_operations(
    violation: Mapping[str, Any], operations: Sequence[PairedOperation] = ()
) -> list[PairedOperation]:
    """Return the contradicting operations that the violation holds, or names by their indexes.

    ``operations`` are those of the history, in order of invocation.
    """
    found: dict[int, PairedOperation] = {}
    for name in ("operation", "core", "operations"):
        value = violation.get(name)
        several = cast("list[object]", value) if isinstance(value, list) else [value]
        for candidate in several:
            try:
                operation = msgspec.convert(candidate, PairedOperation)
            except msgspec.ValidationError:
                # Another checker may mean something else by the name.
                named = _at_index(operations, _mapping(candidate).get("index"))
                if named is None:
                    continue
                operation = named
            found.setdefault(operation.index, operation)
    return list(found.values())


def _at_index(operations: Sequence[PairedOperation], index: object) -> PairedOperation | None:
    if not isinstance(index, int):
        return None
    place = bisect_left(operations, index, key=attrgetter("index"))
    found = operations[place] if place < len(operations) else None
    return found if found is not None and found.index == index else None


def outlined(
    violation: Mapping[str, Any], operations: Sequence[PairedOperation]
) -> list[PairedOperation]:
    """Return the operations to point at, the one that has no place first.

    A core that could not be made small says nothing to a reader; then the graph's essence does.
    """
    core = core_operations(violation, operations)
    graph = _mapping(violation.get("graph"))
    if len(core) <= OUTLINED_MAX or not graph:
        return core[:OUTLINED_MAX]
    shown = set(essence(graph))
    found = {operation.index: operation for operation in operations if operation.index in shown}
    return list({core[0].index: core[0], **found}.values())[:OUTLINED_MAX]


def _mapping(value: object) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def _lines(text: object) -> list[str]:
    lines = cast("list[object]", text) if isinstance(text, list) else str(text or "").splitlines()
    return [str(line) for line in lines][:_TEXT_LINES_MAX]


def _details(violation: Mapping[str, Any]) -> str:
    """Return the data as indented JSON, without the parts that are shown already."""
    shown = ("graph", "core", "text", "account")
    rest = {name: value for name, value in violation.items() if name not in shown}
    text = json.dumps(rest, indent=1, ensure_ascii=False, default=str)
    text = "\n".join(printable(line) for line in text.split("\n"))
    if len(text) <= _DETAILS_CHARACTERS_MAX:
        return text
    return text[:_DETAILS_CHARACTERS_MAX] + "\n… cut; all of it is in results.json"
