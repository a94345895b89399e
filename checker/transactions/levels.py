"""Isolation levels by name, the anomalies that each rules out, and their lattice; pure.

A level is a base, as the single transactions see it, and a promise about their order: none
(``serializable``), that of each process (``strong-session-serializable``), or real time
(``strict-serializable``, ``strong-snapshot-isolation``). An anomaly that rests on such an order
counts against a level that promises it alone. Definitions, over reads of single keys:

- ``read-uncommitted`` is Adya's PL-1: no cycle of overwrites (G0);
- ``read-committed`` is PL-2: besides, no read of an aborted or intermediate value, no cycle of
  overwrites and reads (G1);
- ``parallel-snapshot-isolation``: besides, no cycle with one anti-dependency (G-single, to which
  lost updates belong), and a transaction sees what it did itself (internal);
- ``snapshot-isolation``: besides, no cycle in which no two anti-dependencies are neighbours
  (G-nonadjacent, to which long forks belong);
- ``serializable`` is PL-3: no cycle at all;
- ``repeatable-read`` is PL-2.99: no cycle whose anti-dependencies are all of items. One of a
  predicate read, such as a phantom, is permitted, as locks permit it that are held on items alone.
  (Adya's sentence could be read as "at least one is of an item", which such locks do not keep.)

Three more have the order of each process in their definitions, so there is one of each. There is
one commit order, true to processes and reads, in which nobody reads a version although a later one
is in sight; in sight of a read is

- ``monotonic-atomic-view``: each transaction that an earlier read of its own transaction shows
  (this is the read committed of Biswas and Enea);
- ``read-atomic``: besides, each that any read of its transaction shows, and those before it in its
  process;
- ``causal``: besides, those that these had in sight, and so on.

Sources: Adya 1999, chapters 3 and 4; Cerone and Gotsman 2018, "Analysing snapshot isolation" (no
two neighbours); Daudjee and Salem 2006 (strong session); Sovran and others 2011 (parallel); Biswas
and Enea 2019, "On the complexity of checking transactional consistency"; Bailis and others 2013
(monotonic atomic view).
"""

from collections.abc import Collection, Iterable
from functools import cache
from typing import Final, Literal, NamedTuple

Order = Literal["", "process", "realtime"]
#: Kinds of transactions: of lists that are appended to, of registers that are written, of rows that
#: are inserted, deleted, and read by a predicate.
Kind = Literal["list-append", "rw-register", "rows"]
KINDS: Final[tuple[Kind, ...]] = ("list-append", "rw-register", "rows")

#: Cycles, each of one kind more than the one before.
G0: Final = "G0"
G1C: Final = "G1c"
G_SINGLE: Final = "G-single"
G_NONADJACENT: Final = "G-nonadjacent"
G2_ITEM: Final = "G2-item"
#: The same with an anti-dependency of a predicate read.
G_SINGLE_PREDICATE: Final = "G-single-predicate"
G_NONADJACENT_PREDICATE: Final = "G-nonadjacent-predicate"
G2: Final = "G2"
CYCLES: Final = (
    *(G0, G1C, G_SINGLE, G_SINGLE_PREDICATE, G_NONADJACENT, G_NONADJACENT_PREDICATE, G2_ITEM, G2),
)
#: No order of the writes that no read shows is without such a cycle.
NO_PARALLEL_ORDER: Final = "no-parallel-snapshot-order"
NO_SNAPSHOT_ORDER: Final = "no-snapshot-order"
NO_SERIAL_ORDER: Final = "no-serial-order"
#: Whether missing rows were not there yet or gone already, there is such a cycle.
NO_PARALLEL_ROWS: Final = "no-parallel-snapshot-rows"
NO_SNAPSHOT_ROWS: Final = "no-snapshot-rows"
NO_SERIAL_ROWS: Final = "no-serial-rows"
NO_ORDERS: Final = (
    *(NO_PARALLEL_ORDER, NO_SNAPSHOT_ORDER, NO_SERIAL_ORDER),
    *(NO_PARALLEL_ROWS, NO_SNAPSHOT_ROWS, NO_SERIAL_ROWS),
)
ORDERS: Final[tuple[Order, ...]] = ("", "process", "realtime")

ABORTED_READ: Final = "G1a"
INTERMEDIATE_READ: Final = "G1b"
DIRTY_UPDATE: Final = "dirty-update"
DUPLICATE_ELEMENTS: Final = "duplicate-elements"
INCOMPATIBLE_ORDER: Final = "incompatible-order"
FUTURE_READ: Final = "future-read"
PHANTOM_VALUE: Final = "phantom-value"
CYCLIC_VERSIONS: Final = "cyclic-versions"
INTERNAL: Final = "internal"
LOST_UPDATE: Final = "lost-update"
LONG_FORK: Final = "long-fork"
#: Two predicate reads of one transaction differ.
PHANTOM: Final = "phantom"
OWN_WRITE_MISSED: Final = "own-write-missed"
#: Cycles of commit orders, by what is in sight; they rest on the order of processes, too.
VANISHED: Final = "observed-transaction-vanishes"
FRACTURED: Final = "fractured-read"
CAUSALITY: Final = "causality-violation"
_OF_PROCESSES: Final = frozenset({VANISHED, FRACTURED, CAUSALITY})
#: Outside the lattice: no level promises that anybody ever sees an append.
LOST: Final = "lost"

BASES: Final = (
    "read-uncommitted",
    "read-committed",
    "parallel-snapshot-isolation",
    "snapshot-isolation",
    "repeatable-read",
    "serializable",
)
#: Bases that have the order of processes in their definitions.
COMMIT_ORDERS: Final = ("monotonic-atomic-view", "read-atomic", "causal")
_RU: Final = frozenset({G0, DUPLICATE_ELEMENTS, FUTURE_READ, PHANTOM_VALUE})
_RC: Final = _RU | {
    *(ABORTED_READ, INTERMEDIATE_READ, G1C),
    *(DIRTY_UPDATE, INCOMPATIBLE_ORDER, CYCLIC_VERSIONS),
}
_MAV: Final = _RC | {OWN_WRITE_MISSED, VANISHED}
_RA: Final = _MAV | {INTERNAL, FRACTURED}
_CAUSAL: Final = _RA | {CAUSALITY}
_PSI_ITEMS: Final = _CAUSAL | {G_SINGLE, LOST_UPDATE, NO_PARALLEL_ORDER}
_SI_ITEMS: Final = _PSI_ITEMS | {G_NONADJACENT, LONG_FORK, NO_SNAPSHOT_ORDER}
_ITEMS: Final = _SI_ITEMS | {G2_ITEM, NO_SERIAL_ORDER}
_PSI_ROWS: Final = frozenset({G_SINGLE_PREDICATE, PHANTOM, NO_PARALLEL_ROWS})
_SI_ROWS: Final = _PSI_ROWS | {G_NONADJACENT_PREDICATE, NO_SNAPSHOT_ROWS}
_ROWS: Final = _SI_ROWS | {G2, NO_SERIAL_ROWS}
#: Of everything but rows.
_NOT_OF_ROWS: Final = frozenset(
    {INCOMPATIBLE_ORDER, CYCLIC_VERSIONS, LOST_UPDATE, LONG_FORK, VANISHED, FRACTURED, CAUSALITY}
    | {NO_PARALLEL_ORDER, NO_SNAPSHOT_ORDER, NO_SERIAL_ORDER}
)
_RULED_OUT: Final = {
    "read-uncommitted": _RU,
    "read-committed": _RC,
    "monotonic-atomic-view": _MAV,
    "read-atomic": _RA,
    "causal": _CAUSAL,
    "parallel-snapshot-isolation": _PSI_ITEMS | _PSI_ROWS,
    "snapshot-isolation": _SI_ITEMS | _SI_ROWS,
    "repeatable-read": _ITEMS,
    "serializable": _ITEMS | _ROWS,
}
#: Weaker bases that each implies at once.
_WEAKER: Final = {
    "read-uncommitted": (),
    "read-committed": ("read-uncommitted",),
    "monotonic-atomic-view": ("read-committed",),
    "read-atomic": ("monotonic-atomic-view",),
    "causal": ("read-atomic",),
    "parallel-snapshot-isolation": ("causal",),
    "snapshot-isolation": ("parallel-snapshot-isolation",),
    "repeatable-read": ("causal",),
    "serializable": ("snapshot-isolation", "repeatable-read"),
}
_PREFIXES: Final[dict[Order, str]] = {
    "": "",
    "process": "strong-session-",
    "realtime": "strong-",
}
STRICT_SERIALIZABLE: Final = "strict-serializable"


class Level(NamedTuple):
    """One isolation level."""

    name: str
    base: str
    order: Order

    @property
    def orders(self) -> tuple[Order, ...]:
        """Orders of transactions that the level promises, the empty one among them."""
        return ORDERS[: ORDERS.index(self.order) + 1]

    def forbids(self, anomaly: str) -> bool:
        """Return whether a history with this anomaly is none of this level."""
        plain, order = parts_of(anomaly)
        if plain in _OF_PROCESSES:
            order = "process"
        return order in self.orders and plain in _RULED_OUT[self.base]

    def implies(self, other: "Level") -> bool:
        """Return whether each history of this level is one of the other."""
        return other.order in self.orders and other.base in _below(self.base)


@cache
def parts_of(anomaly: str) -> tuple[str, Order]:
    """Return an anomaly without the order that it rests on, and that order."""
    for order in ORDERS[1:]:
        if anomaly.endswith(f"-{order}"):
            return anomaly.removesuffix(f"-{order}"), order
    return anomaly, ""


def with_order(anomaly: str, order: Order) -> str:
    """Return the name of a cycle that rests on an order."""
    return f"{anomaly}-{order}" if order else anomaly


@cache
def _below(base: str) -> frozenset[str]:
    found = {base}
    for weaker in _WEAKER[base]:
        found |= _below(weaker)
    return frozenset(found)


def _named(base: str, order: Order) -> Level:
    if base in COMMIT_ORDERS:
        return Level(base, base, order)
    is_strict = base == "serializable" and order == "realtime"
    return Level(STRICT_SERIALIZABLE if is_strict else _PREFIXES[order] + base, base, order)


#: All levels by name.
LEVELS: Final = {
    level.name: level
    for level in (
        *(_named(base, "") for base in BASES),
        *(_named(base, "process") for base in (*BASES[:2], *COMMIT_ORDERS, *BASES[2:])),
        *(_named(base, "realtime") for base in BASES),
    )
}

#: Kinds of violations, most telling first; those of cycles in each of the orders.
ANOMALIES: Final = (
    LOST,
    PHANTOM_VALUE,
    DUPLICATE_ELEMENTS,
    INCOMPATIBLE_ORDER,
    ABORTED_READ,
    DIRTY_UPDATE,
    INTERMEDIATE_READ,
    FUTURE_READ,
    OWN_WRITE_MISSED,
    INTERNAL,
    CYCLIC_VERSIONS,
    LOST_UPDATE,
    PHANTOM,
    LONG_FORK,
    *(with_order(cycle, order) for order in ORDERS for cycle in CYCLES),
    VANISHED,
    FRACTURED,
    CAUSALITY,
    *(with_order(name, order) for order in ORDERS for name in NO_ORDERS),
)


def levels_of(kind: Kind) -> tuple[str, ...]:
    """Return the names of the levels that a kind of transactions is judged by.

    Commit orders are defined for reads of single keys.
    """
    without = COMMIT_ORDERS if kind == "rows" else ()
    return tuple(name for name in LEVELS if name not in without)


def anomalies_of(kind: Kind) -> tuple[str, ...]:
    """Return the anomalies that transactions of a kind may show, most telling first."""
    # Rows have no values to be overwritten, and their missing ones no order to be found.
    others = _NOT_OF_ROWS if kind == "rows" else _ROWS
    return tuple(name for name in ANOMALIES if parts_of(name)[0] not in others)


def ruled_out(anomalies: Collection[str]) -> frozenset[str]:
    """Return the names of the levels that a history with these anomalies is not of."""
    return frozenset(name for name, level in LEVELS.items() if any(map(level.forbids, anomalies)))


def strongest(names: Iterable[str]) -> tuple[str, ...]:
    """Return those of some levels that no other one of them implies."""
    levels = _in_order(names)
    return tuple(
        level.name
        for level in levels
        if not any(other != level and other.implies(level) for other in levels)
    )


def weakest(names: Iterable[str]) -> tuple[str, ...]:
    """Return those of some levels that imply no other one of them."""
    levels = _in_order(names)
    return tuple(
        level.name
        for level in levels
        if not any(other != level and level.implies(other) for other in levels)
    )


def _in_order(names: Iterable[str]) -> list[Level]:
    chosen = set(names)
    return [level for name, level in LEVELS.items() if name in chosen]


def in_words(level: str) -> str:
    """Return a level's name for a sentence."""
    return level.replace("-", " ")
