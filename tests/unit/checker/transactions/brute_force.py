"""Isolation levels by their definitions, for histories of a few transactions; slow on purpose.

Shares no code with the checker. Serializability tries every order, snapshot isolation every order
of begins and commits, the others every order of versions. Each tries every choice of the ``info``
transactions that happened.
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import combinations, permutations, product
from typing import Any

from splitbrain.history.records import PairedOperation

Transactions = tuple[PairedOperation, ...]
#: Pairs of places, the first of which comes before the second.
Before = set[tuple[int, int]]

PLAIN_LEVELS = (
    "read-committed",
    "parallel-snapshot-isolation",
    "snapshot-isolation",
    "repeatable-read",
    "serializable",
)
_SESSION = "strong-session-"
_STRONG = "strong-"


def is_of_level(history: Sequence[PairedOperation], level: str) -> bool:
    """Whether some choice and order of its transactions makes the history one of this level."""
    base, order = level, ""
    if level == "strict-serializable":
        base, order = "serializable", "realtime"
    elif level.startswith(_SESSION):
        base, order = level.removeprefix(_SESSION), "process"
    elif level.startswith(_STRONG):
        base, order = level.removeprefix(_STRONG), "realtime"
    elif level in IN_SIGHT:
        order = "process"
    holds = _HOLDS[base]
    return any(holds(chosen, before(chosen, order)) for chosen in choices(history))


def choices(history: Sequence[PairedOperation]) -> Iterator[Transactions]:
    """Every choice of transactions that happened, in the order of the history."""
    open_ones = [o for o in history if o.type == "info"]
    for count in range(len(open_ones) + 1):
        for some in combinations(open_ones, count):
            yield tuple(o for o in history if o.type == "ok" or o in some)


def before(chosen: Transactions, order: str) -> Before:
    """Pairs of transactions whose order is promised."""
    found: Before = set()
    for i, first in enumerate(chosen):
        for j, second in enumerate(chosen):
            if i == j or not order:
                continue
            in_process = first.process == second.process and first.index < second.index
            in_time = first.end is not None and first.end < second.start
            if in_process or (order == "realtime" and in_time):
                found.add((i, j))
    return found


def parts(operation: PairedOperation) -> list[list[Any]]:
    """Micro-operations, with the answers where there are any."""
    return operation.result if operation.type == "ok" else operation.argument


def written(value: Any, f: str, new: Any) -> Any:
    """Value of a key after one write."""
    return [*(value or []), new] if f == "append" else new


def carried_out(operation: PairedOperation, state: dict[Any, Any]) -> dict[Any, Any] | None:
    """State after a transaction alone; None where it answers something else."""
    after = dict(state)
    for f, key, value in parts(operation):
        if f == "r":
            shown = value or None
            if operation.type == "ok" and shown != after.get(key):
                return None
        else:
            after[key] = written(after.get(key), f, value)
    return after


def _is_serial(chosen: Transactions, ordered: Before) -> bool:
    def go_on(left: frozenset[int], state: dict[Any, Any]) -> bool:
        if not left:
            return True
        for place in left:
            if any((other, place) in ordered for other in left):
                continue
            after = carried_out(chosen[place], state)
            if after is not None and go_on(left - {place}, after):
                return True
        return False

    return go_on(frozenset(range(len(chosen))), {})


def _is_snapshot(chosen: Transactions, ordered: Before) -> bool:
    keys = [{key for f, key, _ in parts(o) if f != "r"} for o in chosen]

    def go_on(waiting: frozenset[int], running: dict[int, frozenset[Any]], state: Any) -> bool:
        """``running`` has what was committed over each since it began."""
        if not waiting and not running:
            return True
        for place in waiting:
            unfinished = waiting | running.keys()
            if any((other, place) in ordered for other in unfinished):
                continue
            if carried_out(chosen[place], state) is None:
                continue
            if go_on(waiting - {place}, {**running, place: frozenset()}, state):
                return True
        for place, over in running.items():
            if over & keys[place]:
                continue
            after = dict(state)
            for f, key, value in parts(chosen[place]):
                if f != "r":
                    after[key] = written(after.get(key), f, value)
            rest = {
                other: met | frozenset(keys[place])
                for other, met in running.items()
                if other != place
            }
            if go_on(waiting, rest, after):
                return True
        return False

    return go_on(frozenset(range(len(chosen))), {}, {})


#: Writes of one key in the order of their versions: transaction, place in it, value.
_Versions = tuple[tuple[int, int, Any], ...]


def version_orders(chosen: Transactions) -> Iterator[dict[Any, _Versions]]:
    """Every order of the versions of each key, true to the order within a transaction."""
    writes: dict[Any, list[tuple[int, int, Any]]] = {}
    for txn, operation in enumerate(chosen):
        for place, (f, key, value) in enumerate(parts(operation)):
            if f != "r":
                writes.setdefault(key, []).append((txn, place, value))
    for chosen_orders in product(*(_merged(found) for found in writes.values())):
        yield dict(zip(writes, chosen_orders, strict=True))


def _merged(writes: Sequence[tuple[int, int, Any]]) -> list[_Versions]:
    """Every order in which the writes of a transaction keep theirs."""
    if not writes:
        return [()]
    firsts = {write[0]: write for write in reversed(writes)}
    return [
        (first, *rest)
        for first in firsts.values()
        for rest in _merged([write for write in writes if write != first])
    ]


def edges_of(chosen: Transactions, orders: dict[Any, _Versions]) -> tuple[Before, Before] | None:
    """Dependencies and anti-dependencies; None where a read is none of a committed version."""
    firm: Before = set()
    anti: Before = set()
    settled: dict[Any, _Versions] = {}
    for key, order in orders.items():
        is_list = any(f == "append" for o in chosen for f, k, _ in parts(o) if k == key)
        last = {txn: (txn, place, value) for txn, place, value in order}
        # A register keeps the last write of a transaction alone.
        settled[key] = order if is_list else tuple(w for w in order if last[w[0]] == w)
        firm |= {
            (one[0], other[0])
            for one, other in zip(settled[key], settled[key][1:], strict=False)
            if one[0] != other[0]
        }
    for txn, operation in enumerate(chosen):
        if operation.type != "ok":
            continue
        for place, (f, key, value) in enumerate(parts(operation)):
            if f != "r":
                continue
            found = _version_read(orders.get(key, ()), settled.get(key, ()), txn, place, value)
            if found is None:
                return None
            writer, following = found
            if writer is not None and writer != txn:
                firm.add((writer, txn))
            if following is not None and following != txn:
                anti.add((txn, following))
    return firm, anti


def _version_read(
    order: _Versions, settled: _Versions, txn: int, place: int, value: Any
) -> tuple[int | None, int | None] | None:
    """Writers of the version that was read and of the next one."""
    if value is None or value == []:
        return None, settled[0][0] if settled else None
    if isinstance(value, list):
        if [each for _, _, each in order[: len(value)]] != value:
            return None
        if any(w[0] == txn and w[1] > place for w in order[: len(value)]):
            return None
        writer, at, _ = order[len(value) - 1]
        is_last = not any(w[0] == writer and w[1] > at for w in order)
        following = order[len(value)][0] if len(value) < len(order) else None
        return (writer, following) if is_last or writer == txn else None
    known = [w for w in order if w[2] == value]
    if not known:
        return None
    writer, at, _ = known[0]
    if writer == txn:
        if at > place:
            return None
        known = [w for w in settled if w[0] == txn]
    elif known[0] not in settled:
        return None
    behind = settled.index(known[0]) + 1
    return writer, settled[behind][0] if behind < len(settled) else None


def closure(edges: Before, count: int) -> Before:
    """All pairs that edges lead between."""
    found = set(edges)
    for middle in range(count):
        for one in range(count):
            for other in range(count):
                if (one, middle) in found and (middle, other) in found:
                    found.add((one, other))
    return found


def sees_itself(operation: PairedOperation) -> bool:
    """Whether a transaction reads what it had read and written before."""
    if operation.type != "ok":
        return True
    known: dict[Any, Any] = {}
    own: dict[Any, list[Any]] = {}
    for f, key, value in parts(operation):
        if f == "r":
            shown = value or None
            if key in known and known[key] != shown:
                return False
            mine = own.get(key, [])
            if key not in known and mine:
                ends = shown[-len(mine) :] if isinstance(shown, list) else shown
                if ends != (mine if isinstance(shown, list) else mine[-1]):
                    return False
            known[key] = shown
        elif key in known:
            known[key] = written(known[key], f, value)
        elif f == "append":
            own.setdefault(key, []).append(value)
        else:
            known[key] = value
    return True


def _is_read_committed(chosen: Transactions, ordered: Before) -> bool:
    for orders in version_orders(chosen):
        edges = edges_of(chosen, orders)
        if edges is not None:
            reached = closure(edges[0] | ordered, len(chosen))
            if not any((place, place) in reached for place in range(len(chosen))):
                return True
    return False


def _is_parallel_snapshot(chosen: Transactions, ordered: Before) -> bool:
    if not all(map(sees_itself, chosen)):
        return False
    for orders in version_orders(chosen):
        edges = edges_of(chosen, orders)
        if edges is None:
            continue
        reached = closure(edges[0] | ordered, len(chosen))
        is_cyclic = any((place, place) in reached for place in range(len(chosen)))
        if not is_cyclic and not any((other, one) in reached for one, other in edges[1]):
            return True
    return False


def _commits_in_order(sight: str) -> Callable[[Transactions, Before], bool]:
    """Whether an order of commits exists in which no read misses a later version in sight."""

    def holds(chosen: Transactions, ordered: Before) -> bool:
        places = range(len(chosen))
        for order in permutations(places):
            rank = {txn: place for place, txn in enumerate(order)}
            if any(rank[one] > rank[other] for one, other in ordered):
                continue
            if _explains(chosen, rank, ordered, sight):
                return True
        return False

    return holds


def _explains(chosen: Transactions, rank: dict[int, int], ordered: Before, sight: str) -> bool:
    writers: dict[Any, list[tuple[int, int, Any]]] = {}
    for txn in sorted(rank, key=lambda txn: rank[txn]):
        for place, (f, key, value) in enumerate(parts(chosen[txn])):
            if f != "r":
                writers.setdefault(key, []).append((txn, place, value))
    #: Reader, place, key, who was read from; None is the beginning.
    reads: list[tuple[int, int, Any, int | None]] = []
    for txn, operation in enumerate(chosen):
        if operation.type != "ok":
            continue
        if sight != "earlier" and not sees_itself(operation):
            return False
        for place, (f, key, value) in enumerate(parts(operation)):
            if f != "r":
                continue
            shown = value or None
            written_to_it = writers.get(key, [])
            if isinstance(shown, list) and [v for _, _, v in written_to_it[: len(shown)]] != shown:
                return False
            last = shown[-1] if isinstance(shown, list) else shown
            own = [w for w in written_to_it if w[0] == txn]
            before_it = [w for w in own if w[1] < place]
            if before_it:
                if last != before_it[-1][2]:
                    return False
                continue
            if shown is None:
                reads.append((txn, place, key, None))
                continue
            found = [w for w in written_to_it if w[2] == last and w not in own]
            if not found:
                return False
            source = found[0][0]
            if [w for w in written_to_it if w[0] == source][-1] != found[0]:
                return False
            reads.append((txn, place, key, source))
    shows = {(source, txn) for txn, _, _, source in reads if source is not None}
    if any(rank[source] > rank[txn] for source, txn in shows):
        return False
    past = closure(shows | ordered, len(chosen))
    for txn, place, key, source in reads:
        earlier = {(s, t) for t, p, _, s in reads if s is not None and t == txn and p < place}
        seen = {"earlier": earlier, "txn": shows | ordered, "past": past}[sight]
        for writer in {w[0] for w in writers.get(key, [])} - {source}:
            if (writer, txn) in seen and (source is None or rank[writer] > rank[source]):
                return False
    return True


#: Levels that ask for an order of commits, by what is in sight of a read.
IN_SIGHT = {"monotonic-atomic-view": "earlier", "read-atomic": "txn", "causal": "past"}
_HOLDS: dict[str, Callable[[Transactions, Before], bool]] = {
    "read-committed": _is_read_committed,
    "parallel-snapshot-isolation": _is_parallel_snapshot,
    "snapshot-isolation": _is_snapshot,
    "repeatable-read": _is_serial,
    "serializable": _is_serial,
    **{level: _commits_in_order(sight) for level, sight in IN_SIGHT.items()},
}
