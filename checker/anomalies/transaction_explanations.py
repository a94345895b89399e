"""Words on the anomalies of transactions that no other checker finds; pure.

Sources: Adya 1999, chapters 3 and 4; Berenson and others 1995 (P4); Kingsbury and Alvaro 2020.
"""

from typing import Final

from splitbrain.checker.anomalies import names
from splitbrain.checker.transactions import levels
from splitbrain.contracts.explanation import Explanation

_ADYA: Final = "Adya 1999, chapters 3 and 4"
_ELLE: Final = "Kingsbury and Alvaro 2020 (Elle)"
_NEXT_STEP: Final = (
    "The sentences beside the verdict name the transactions and the value that proves each step. "
    "`splitbrain check FILE --model list-append --level snapshot-isolation` asks about one level."
)
_ORDERS_FOUND: Final = "Huang and others 2023 (PolySI); Zhang and others 2023 (Viper)"
_SKEW: Final = (
    "T1   r x [], append y 1\nT2   r y [], append x 1     each read what the other one replaced"
)

_FORKED: Final = (
    "T1   insert g 1\nT2   insert h 2\nT3   range g [1], range h []\nT4   range g [], range h [2]"
)
_HALF_SHOWN: Final = (
    "T1   insert g 1, insert g 2\nT2   delete g 1, insert g 3\n"
    "T3   range g [2]     before T2 it were shown 1, and after it 3"
)

#: Name, meaning, why it matters, the smallest case, source.
_TEXTS: Final = (
    (
        levels.G0,
        "a cycle of overwrites: of two transactions each wrote a key behind the other",
        "Writes of two transactions are mixed, so the state is that of neither.",
        "T1   append x 1, append y 1\nT2   append x 2, append y 2     x is [1 2], y is [2 1]",
        _ADYA,
    ),
    (
        levels.G1C,
        "a cycle of overwrites and reads: information flowed in a circle",
        "A transaction was shown work that rests on its own, before that was committed.",
        "T1   append x 1, r y [1]\nT2   append y 1, r x [1]     each read the other",
        _ADYA,
    ),
    (
        levels.G_SINGLE,
        "a cycle with one anti-dependency: a transaction saw one part of others' work, not another",
        "A read is torn: it mixes two states of the database. Lost updates are of this kind.",
        "T1   append x 1, append y 1\nT2   r x [1], r y []     it saw half of T1",
        _ADYA,
    ),
    (
        levels.G_NONADJACENT,
        "a cycle with several anti-dependencies, no two of them neighbours",
        "There is no one order in which snapshots were taken: two clients saw two histories.",
        "T1   append x 1\nT2   append y 1\nT3   r x [1], r y []\nT4   r y [1], r x []",
        "Cerone and Gotsman 2018; Kingsbury and Alvaro 2020 (Elle)",
    ),
    (
        levels.G2_ITEM,
        "a cycle in which two anti-dependencies are neighbours, such as write skew",
        "Two doctors go off call, each because the other one is on. Snapshot isolation permits it.",
        _SKEW,
        _ADYA,
    ),
    (
        levels.G_SINGLE_PREDICATE,
        "a cycle with one anti-dependency, of a predicate read: a row was missed of what was seen",
        "A list and what follows from it disagree: the order is there, its line is not.",
        "T1   insert g 1, insert h 2\nT2   range g [1], range h []     it saw half of T1",
        _ADYA,
    ),
    (
        levels.G_NONADJACENT_PREDICATE,
        "a cycle with several anti-dependencies, none of them neighbours, one of a predicate read",
        "There is no one order in which snapshots were taken: two clients saw two sets of rows.",
        _FORKED,
        "Adya 1999, chapters 3 and 4; Cerone and Gotsman 2018",
    ),
    (
        levels.G2,
        "a cycle in which two anti-dependencies are neighbours, one of a predicate read",
        "Two book the last room: each looked for bookings, saw none, and inserted its own.",
        "T1   range g [], insert g 1\nT2   range g [], insert g 2     each missed the other's row",
        _ADYA,
    ),
    (
        names.PHANTOM,
        "a transaction asked twice for all rows of a group, and was shown others the second time",
        "What was counted is not what is then changed. Repeatable read permits it.",
        "T1   range g []\nT2   insert g 1\nT1   range g [1]",
        "Berenson and others 1995 (P3); Adya 1999, section 4.3",
    ),
    (
        levels.ABORTED_READ,
        "a transaction read a value of one that certainly failed",
        "Whoever acts on that value acts on something that officially never was.",
        "T1   append x 1     fail\nT2   r x [1]",
        _ADYA,
    ),
    (
        levels.INTERMEDIATE_READ,
        "a transaction read a value that another one replaced, or appended to, before its end",
        "It saw a state that no transaction left behind: half a transfer.",
        "T1   append x 1, append x 2\nT2   r x [1]",
        _ADYA,
    ),
    (
        names.DIRTY_UPDATE,
        "a transaction wrote on top of the value of one that certainly failed",
        "Work that was rolled back lives on in the work that rests on it.",
        "T1   append x 1     fail\nT2   append x 2\nT3   r x [1 2]",
        _ELLE,
    ),
    (
        names.FUTURE_READ,
        "a transaction read a value before it wrote it itself",
        "Effects come before their causes: the answer belongs to another moment.",
        "T1   r x [1], append x 1",
        _ELLE,
    ),
    (
        names.INCOMPATIBLE_ORDER,
        "reads show the versions of a key, or a transaction's own writes, in different orders",
        "Replicas have applied the same writes in different orders, and will stay different.",
        "T1   r x [1 2]\nT2   r x [2 1]",
        _ELLE,
    ),
    (
        names.CYCLIC_VERSIONS,
        "by what its writers had read, a version of a register is older than itself",
        "No order of the versions exists, so whatever is kept contradicts somebody.",
        "T1   r x 2, w x 1\nT2   r x 1, w x 2",
        _ELLE,
    ),
    (
        names.INTERNAL,
        "a transaction does not see what it did or read itself before",
        "Within one transaction the ground moves: a check and the act that rests on it disagree.",
        "T1   append x 1, r x []",
        "Cerone, Bernardi and Gotsman 2015 (internal consistency)",
    ),
    (
        names.LONG_FORK,
        "two readers saw two writes in different orders: each missed the one that the other saw",
        "Two clients that compare notes find two histories, which parallel snapshots permit.",
        "T1   append x 1\nT2   append y 1\nT3   r x [1], r y []\nT4   r x [], r y [1]",
        "Sovran and others 2011 (long fork)",
    ),
    (
        names.OWN_WRITE_MISSED,
        "a transaction read a key that it had written itself, and was not shown that last write",
        "A client that looks at what it has just done sees something else.",
        "T1   w x 1, r x 2",
        "Biswas and Enea 2019",
    ),
    (
        names.VANISHED,
        "a transaction that an earlier read had shown was not there for a later one",
        "Work of others comes and goes while a transaction looks at it.",
        "T1   w x 1, w y 1\nT2   r x 1, r y null     it saw T1, and then did not",
        "Bailis and others 2013 (observed transaction vanishes); Biswas and Enea 2019",
    ),
    (
        names.FRACTURED,
        "a transaction saw one write of another and not the rest, or missed its own process's",
        "Two halves of one change, such as a name and its index, are seen apart.",
        "T1   w x 1, w y 1\nT2   r y null, r x 1     it saw half of T1",
        "Bailis and others 2014 (RAMP); Biswas and Enea 2019",
    ),
    (
        names.CAUSALITY,
        "a read missed a write on which something rests that its transaction had seen",
        "An answer is there before its question: effects are shown without their causes.",
        "T1   w x 1\nT2   r x 1, w y 1\nT3   r y 1, r x null     it saw T2, not what T2 saw",
        "Biswas and Enea 2019",
    ),
    (
        levels.NO_PARALLEL_ORDER,
        "each order of the writes that no read shows has a cycle with one anti-dependency at most",
        "No single cycle is certain, and yet parallel snapshots cannot explain what was read.",
        f"{_SKEW}\n     and both append to z, which nobody reads",
        _ORDERS_FOUND,
    ),
    (
        levels.NO_SNAPSHOT_ORDER,
        "each order of the writes that no read shows has a cycle that snapshots forbid",
        "No single cycle is certain, and yet snapshots cannot explain what was read.",
        f"{_SKEW}\n     and both append to z, which nobody reads",
        _ORDERS_FOUND,
    ),
    (
        levels.NO_SERIAL_ORDER,
        "each order of the writes that no read shows has a cycle",
        "No single cycle is certain, and yet no serial order explains what was read.",
        "T1   w x 1, w y 2\nT2   r x null, w x 3\nT3   r y 2, r x 3",
        _ORDERS_FOUND,
    ),
    (
        levels.NO_PARALLEL_ROWS,
        "whether missing rows were not there yet or gone, a cycle has one anti-dependency at most",
        "No single cycle is certain, and yet parallel snapshots cannot explain the rows shown.",
        _HALF_SHOWN,
        _ORDERS_FOUND,
    ),
    (
        levels.NO_SNAPSHOT_ROWS,
        "whether missing rows were not there yet or gone already, snapshots forbid a cycle",
        "No single cycle is certain, and yet snapshots cannot explain the rows that were shown.",
        _HALF_SHOWN,
        _ORDERS_FOUND,
    ),
    (
        levels.NO_SERIAL_ROWS,
        "whether missing rows were not there yet or gone already, there is a cycle",
        "No single cycle is certain, and yet no serial order explains the rows that were shown.",
        _HALF_SHOWN,
        _ORDERS_FOUND,
    ),
)
_ORDERS: Final = {
    "process": (
        "that counts once the order of transactions within each process is added",
        "It rules out levels that promise that order, the strong-session ones and the strong ones.",
    ),
    "realtime": (
        "that counts once it is added that a transaction began after another had ended",
        "Only strong levels promise real time: plain ones permit the stale reads of a standby.",
    ),
}


def transaction_anomalies() -> tuple[Explanation, ...]:
    """Return all of them; cycles also with the orders that they may rest on."""
    return (*_plain(), *_in_orders())


def _plain() -> list[Explanation]:
    return [
        Explanation(
            name=name,
            says=f"{meaning[0].upper()}{meaning[1:]}.",
            why=why,
            breaks=picture,
            next_step=_NEXT_STEP,
            source=source,
        )
        for name, meaning, why, picture, source in _TEXTS
    ]


def _in_orders() -> list[Explanation]:
    meanings = {name: (meaning, source) for name, meaning, _, _, source in _TEXTS}
    return [
        Explanation(
            name=f"{cycle}-{order}",
            says=f"The anomaly {cycle} {when}: {meanings[cycle][0]}.",
            why=why,
            next_step=_NEXT_STEP,
            source=meanings[cycle][1],
        )
        for order, (when, why) in _ORDERS.items()
        for cycle in (*levels.CYCLES, *levels.NO_ORDERS)
    ]
