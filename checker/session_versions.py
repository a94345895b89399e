"""Sessions on a register of distinct values: do they agree with any order of its versions?

Where every written value is distinct, a value is a version. A process that read one version and
then another testifies that the second is newer (monotonic reads); so does one that wrote a version,
was acknowledged and then read another (read your writes), and a compare-and-set about the version
that it replaced. Nothing is newer than itself, and the initial value is older than all: a circle of
such testimony is a violation, though not which session broke its guarantee, if several close it.

Assumes that a register has one order of versions. Linear, apart from the circles.
"""

from collections import Counter
from collections.abc import Collection, Hashable, Sequence
from itertools import islice, pairwise
from typing import Final, NamedTuple

import networkx as nx

from splitbrain.checker.evidence import cas_succeeded
from splitbrain.checker.findings import Findings, of_key
from splitbrain.checker.models.model import freeze, is_list_of, text_of
from splitbrain.history.records import PairedOperation

MONOTONIC_READS: Final = "monotonic-reads"
READ_YOUR_WRITES: Final = "read-your-writes"


class _Nothing:
    """Absence of a value, as opposed to null."""


NOTHING: Final = _Nothing()


def written_by(operation: PairedOperation) -> Hashable:
    """Return the value that an operation writes, or may have written; ``NOTHING`` for none."""
    if operation.f == "write":
        return freeze(operation.argument)
    if operation.f == "cas" and is_list_of(operation.argument, 2):
        expected, new = (freeze(value) for value in operation.argument)
        happened = operation.type == "info" or cas_succeeded(operation.result)
        if happened and expected != new:
            return new
    return NOTHING


_CAS = "cas"
#: Edges of one circle that are described.
_SENTENCES_MAX = 6
#: Edges of a tangle of versions that are tried for a short circle.
_EDGES_TRIED_MAX = 20


class _Edge(NamedTuple):
    """Testimony that one version is newer than another."""

    guarantee: str
    first: PairedOperation
    second: PairedOperation


#: First testimony, by older version, then newer version.
_Order = dict[Hashable, dict[Hashable, _Edge]]


def judge_versions(members: Sequence[PairedOperation], findings: Findings) -> str | None:
    """Judge a register; return the reason why it cannot be judged, if so.

    ``members`` are ``read``, ``write`` and ``cas`` of one key by index, not failed.
    """
    written = Counter(value for o in members if (value := written_by(o)) is not NOTHING)
    repeated = next((value for value, times in written.items() if times > 1), NOTHING)
    if repeated is not NOTHING:
        return f"the value {text_of(repeated)} was written more than once"
    if None in written:
        return "null was written, which is also what stands there before any write"
    order = _order_of(members, findings)
    for older, newer in order.items():
        edge = newer.pop(None, None)
        if edge is not None:
            _note_circle([edge], [older, None], findings)
    circles: nx.DiGraph[Hashable] = nx.DiGraph()
    circles.add_edges_from(_edges_in_circles(order))
    for component in nx.strongly_connected_components(circles):
        if len(component) > 1:
            around = _shortest_circle(circles, component)
            _note_circle([order[a][b] for a, b in pairwise(around)], around, findings)
    return None


def _shortest_circle(
    circles: "nx.DiGraph[Hashable]", component: Collection[Hashable]
) -> list[Hashable]:
    best: list[Hashable] = []
    edges = ((a, b) for a, b in circles.edges(component) if b in component)
    for older, newer in islice(edges, _EDGES_TRIED_MAX):
        # The stubs leave the keyword arguments of backends untyped.
        back: list[Hashable] = nx.shortest_path(  # pyright: ignore[reportUnknownMemberType]
            circles, newer, older
        )
        if not best or len(back) < len(best):
            best = back
    return [best[-1], *best]


def _order_of(members: Sequence[PairedOperation], findings: Findings) -> _Order:
    order: _Order = {}
    #: Last version read, or written since, by process: version, operation, guarantee.
    known: dict[int, list[tuple[Hashable, PairedOperation, str]]] = {}
    for operation in members:
        findings.poll()
        if operation.type != "ok":
            continue
        mine = known.setdefault(operation.process, [])
        if operation.f == "read":
            version = freeze(operation.result)
            for earlier, by, guarantee in mine:
                if earlier != version:
                    edge = _Edge(guarantee, by, operation)
                    order.setdefault(earlier, {}).setdefault(version, edge)
            mine[:] = [(version, operation, MONOTONIC_READS)]
        elif (written := written_by(operation)) is not NOTHING:
            mine.append((written, operation, READ_YOUR_WRITES))
            if operation.f == "cas":
                replaced = freeze(operation.argument[0])
                edge = _Edge(_CAS, operation, operation)
                order.setdefault(replaced, {}).setdefault(written, edge)
    return order


def _edges_in_circles(order: _Order) -> list[tuple[Hashable, Hashable]]:
    """Return the edges that remain when the oldest versions are taken away until none is oldest."""
    older = Counter(version for newer in order.values() for version in newer)
    free = [version for version in order if not older[version]]
    left = dict(order)
    while free:
        for version in left.pop(free.pop(), {}):
            older[version] -= 1
            if not older[version]:
                free.append(version)
    return [(version, newer) for version in left for newer in left[version]]


def _note_circle(edges: Sequence[_Edge], versions: Sequence[Hashable], findings: Findings) -> None:
    guarantees = {edge.guarantee for edge in edges}
    kind = READ_YOUR_WRITES if READ_YOUR_WRITES in guarantees else MONOTONIC_READS
    sentences = [
        _sentence(edge, *pair) for edge, pair in zip(edges, pairwise(versions), strict=True)
    ]
    involved = {o.index: o for edge in edges[:_SENTENCES_MAX] for o in (edge.first, edge.second)}
    more = (
        f". And {len(sentences) - _SENTENCES_MAX:,} more" if len(sentences) > _SENTENCES_MAX else ""
    )
    findings.note(
        kind,
        [*involved.values()],
        lambda: (
            f"{'. '.join(sentences[:_SENTENCES_MAX])}{more}. No order of the versions"
            f"{of_key(edges[0].first.key)} allows {'that' if len(edges) == 1 else 'all of these'}."
        ),
    )


def _sentence(edge: _Edge, older: Hashable, newer: Hashable) -> str:
    first, second = edge.first, edge.second
    if edge.guarantee == _CAS:
        return f"Index {first.index} replaced {text_of(older)} by {text_of(newer)}"
    verb = "read" if edge.guarantee == MONOTONIC_READS else "wrote"
    return (
        f"Process {first.process} {verb} {text_of(older)} (index {first.index}) and later read "
        f"{text_of(newer)} (index {second.index})"
    )
