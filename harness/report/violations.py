"""A checker's violations as the page shows them: sentence, pictures, details. Pure.

Knows the shapes of the project's checkers (a ``core`` and a ``graph`` of operations) and shows any
other violation by its sentence and its data.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, cast

import msgspec
from markupsafe import Markup

from splitbrain.checker.anomalies.names import name_of
from splitbrain.checker.verdict import CheckResult
from splitbrain.harness.console.plain_text import printable
from splitbrain.harness.report.graph_picture import draw_graph, essence
from splitbrain.harness.report.operations_picture import Picture, choose, draw
from splitbrain.history.records import PairedOperation

#: Violations explained per checker; the rest is counted.
EXPLAINED_MAX = 3
OUTLINED_MAX = 12
_DETAILS_CHARACTERS_MAX = 12_000
_TEXT_LINES_MAX = 60


class ShownViolation(msgspec.Struct, frozen=True):
    """One violation, ready for the template."""

    checker: str
    #: Name of the anomaly.
    name: str
    #: Account of what happened; empty where the sentence is all there is.
    account: str
    sentence: str
    #: Bars per process; None where the violation names no operations.
    picture: Picture | None
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


def show_violations(
    operations: Sequence[PairedOperation], checkers: Iterable[CheckResult]
) -> list[ShownViolation]:
    """Return the first violations of every checker, in the order of the checkers."""
    shown: list[ShownViolation] = []
    for result in checkers:
        first = result.violations[:EXPLAINED_MAX]
        for number, violation in enumerate(first):
            last = number == len(first) - 1
            more = len(result.violations) - len(first) if last else 0
            identifier = f"v{len(shown)}"
            item = _show(result.checker, violation, operations, identifier, number == 0, more)
            shown.append(item)
    return shown


def _show(
    checker: str,
    violation: Mapping[str, Any],
    operations: Sequence[PairedOperation],
    identifier: str,
    first: bool,
    more: int,
) -> ShownViolation:
    core = outlined(violation, operations)
    key = core[0].key if core else None
    drawn = choose(operations, core, key)
    culprit = core[0].index if core else None
    graph = _mapping(violation.get("graph"))
    return ShownViolation(
        checker=checker,
        name=name_of(checker, violation),
        account=str(violation.get("account", "")),
        sentence=str(violation.get("sentence", "")),
        picture=draw(drawn, frozenset(operation.index for operation in core), culprit),
        first=first,
        drawn=len(drawn),
        core=len(core),
        graph=draw_graph(graph, identifier) if graph else Markup(),
        lines=_lines(violation.get("text")),
        details=_details(violation),
        more=more,
    )


def explaining_overlaps(checkers: Iterable[CheckResult]) -> Iterator[list[dict[str, Any]]]:
    """Yield the overlaps of two reigns, the older one first, that are part of a violation."""
    for result in checkers:
        for violation in result.violations:
            overlap = violation.get("overlap")
            if isinstance(overlap, list) and len(cast("list[Any]", overlap)) == 2:
                yield cast("list[dict[str, Any]]", overlap)


def core_operations(violation: Mapping[str, Any]) -> list[PairedOperation]:
    """Return the contradicting operations that the violation itself holds."""
    found: dict[int, PairedOperation] = {}
    for name in ("operation", "core", "operations"):
        value = violation.get(name)
        several = cast("list[object]", value) if isinstance(value, list) else [value]
        for candidate in several:
            try:
                operation = msgspec.convert(candidate, PairedOperation)
            except msgspec.ValidationError:
                continue  # another checker may mean something else by the name
            found.setdefault(operation.index, operation)
    return list(found.values())


def outlined(
    violation: Mapping[str, Any], operations: Sequence[PairedOperation]
) -> list[PairedOperation]:
    """Return the operations to point at, the one that has no place first.

    A core that could not be made small says nothing to a reader; then the graph's essence does.
    """
    core = core_operations(violation)
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
    shown = ("graph", "text", "account")
    rest = {name: value for name, value in violation.items() if name not in shown}
    text = json.dumps(rest, indent=1, ensure_ascii=False, default=str)
    text = "\n".join(printable(line) for line in text.split("\n"))
    if len(text) <= _DETAILS_CHARACTERS_MAX:
        return text
    return text[:_DETAILS_CHARACTERS_MAX] + "\n… cut; all of it is in results.json"
