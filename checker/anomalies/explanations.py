"""Words on each anomaly: why it matters, and a picture of the smallest case; pure.

``checker.anomalies.names`` says what each name of ``MEANINGS`` means; the other names say it here.
Sources: Adya 1999; Jepsen's catalogue of consistency models and anomalies; Herlihy and Wing 1990.
"""

from typing import Final

from splitbrain.checker.anomalies import names
from splitbrain.checker.anomalies.names import MEANINGS
from splitbrain.checker.anomalies.transaction_explanations import transaction_anomalies
from splitbrain.contracts.explanation import Explanation

_NEXT_STEP: Final = (
    "The account beside the verdict names the operations, their nodes and the fault in force. "
    "`splitbrain shrink RUN` makes the run small, `splitbrain replay RUN --times 10` says how "
    "often it fails."
)
_HERLIHY: Final = "Herlihy and Wing 1990 (linearizability)"
_ADYA: Final = "Adya 1999, chapter 3"

#: Meaning of the names of other checkers' violations.
_MEANINGS_OF_OTHERS: Final = {
    names.SPLIT_BRAIN: "two nodes led in one epoch, by what they themselves logged",
    "lost write at one member": "a member lacks an acknowledged element that another one shows",
    "count too low": "a read of a counter is below what was surely added by then",
    "count too high": "a read of a counter is above all that can have been added by then",
    "wrong total": "a read of all balances shows another total than there is money",
    "missing balance": "a read of all balances lacks that of an account",
    "negative balance": "a read shows a balance below zero",
    "read that went back": "a process reads something older than what it had read before",
    "own write not seen": "a process does not read what it wrote itself",
    names.VANISHED_RECORD: "a record that somebody had read is not there for later readers",
    names.TORN: "of a transaction some records were read, and others are nowhere",
    names.PRECOMMITTED: "a transaction reads its own records before it is committed",
    names.HANGING: "a transaction stays open longer than it may, and nobody reads on behind it",
    names.SKIPPED: "a consumer passed over a record that others read",
    names.TWO_HOLDERS: "a share group gave a record to a member while another one held it",
    names.TWO_OWNERS: "a group gave a log to two members in one generation, or in one epoch",
    names.FENCED_COMMIT: "a commit was accepted of a member whose generation, or epoch, was over",
    names.PASSED_OVER: "a group committed past a record that none of its members was delivered",
    names.PASSED_EARLY: "a group had committed past a record before a member was delivered it",
    "end that went back": "a final read found the end of a log before an offset that was known",
    "poll that went back": "a consumer reads an offset again, or one before it",
    "silent broker in service": "a broker is unfenced though it was silent for a whole session",
    "deposed leader that goes on": "a leader goes on long after a majority has elected another",
    "missing record": "a log at the end lacks a record that others hold as committed",
    "offset that went back": "an offset that was committed and acknowledged is a lower one later",
    "zombie not fenced": "a transaction was acknowledged to a client that had lost its work to "
    "another one before it began",
    "broken sequence": "a producer's numbered records are not all there, once each, in order",
    "epoch that went back": "a node reports a lower epoch than it had reported before",
    "view that went back": "a broker shows metadata that are older than those it showed before",
    "view of something never committed": "a broker shows a topic as the committed log never had it",
}

_WHY: Final = {
    names.DIRTY_READ: "Whoever acts on that value acts on something that officially never was.",
    names.PHANTOM_VALUE: "Data appears from nowhere: corruption, or an answer that belongs to "
    "another request.",
    names.FORK: "Both lines were acknowledged to somebody. Whichever is kept, the other is lost.",
    names.LOST_WRITE: "The client was told that its data is safe, so it will not send it again.",
    names.LOST_UPDATE: "Two clients changed one value, and the work of one is gone: a booking, a "
    "deposit, a counter's step.",
    names.DOUBLE_CAS: "Compare-and-set decides who wins. Two winners hold one lock, or sell one "
    "seat twice.",
    names.DOUBLE_GRANT: "A lock exists to keep two out of one place; both are in it now.",
    names.DOUBLE_SUCCESS: "Each client believes that it won, and goes on.",
    names.DUPLICATE: "A payment, a message or an id that must be there once is there twice, most "
    "often because a retry was carried out again.",
    names.REORDER: "A queue promises the order. Who builds on it applies a later change before an "
    "earlier one.",
    names.STALE_TOKEN: "The token was to keep out a holder that lost its lock and does not know "
    "it; now it overwrites its successor's work.",
    names.WRONG_REFUSAL: "The client is told that it lost although nobody else won: work that "
    "could be done is not, or a node decided on stale state.",
    names.STALE_READ: "A client decides on a value that is no longer true, though it, or another "
    "client before it, was told of the newer one.",
    names.NOT_LINEARIZABLE: "The system promises that operations take effect one at a time, each "
    "between its call and its answer. These cannot have, in any order.",
    names.SPLIT_BRAIN: "Both may acknowledge writes at the same place of the log; only one of them "
    "can survive.",
    "lost write at one member": "Who asks that member does not find what was acknowledged, and if "
    "it is elected next, nobody does.",
    "count too low": "An acknowledged addition is not there: a lost update of a counter.",
    "count too high": "Something was added twice, or was added although it had failed.",
    "wrong total": "Money was made or destroyed: a transfer was seen, or carried out, by half.",
    "missing balance": "A read of everything did not answer everything.",
    "negative balance": "A transfer was allowed although the money was gone: its condition was "
    "checked against stale state.",
    "read that went back": "To this client time runs backwards: something that it saw is undone.",
    "own write not seen": "A user saves, reloads, and the change is gone.",
    names.VANISHED_RECORD: "Somebody acted on a record that officially never was.",
    names.TORN: "A transaction is all or nothing; here the input may be done and its output gone.",
    names.PRECOMMITTED: "It acts on what may still be aborted.",
    names.HANGING: "Whoever reads what is committed stands still there, for ever.",
    names.SKIPPED: "That consumer will never handle the record: its work is not done.",
    names.TWO_HOLDERS: "The work is done twice, by two that each believe to be alone with it.",
    names.TWO_OWNERS: "Both handle the same records, each of which believes to be alone with them.",
    names.FENCED_COMMIT: "It overwrites how far its successor has come.",
    names.PASSED_OVER: "The group will never handle the record: its work is not done.",
    names.PASSED_EARLY: "Had the group stopped there, nobody would ever have handled the record.",
    "end that went back": "A log only grows; one that shrinks has lost its end.",
    "poll that went back": "Work is done twice, and later records are handled before earlier ones.",
    "deposed leader that goes on": "Whoever reaches that leader alone waits for as long as it goes "
    "on, though others are served.",
    "silent broker in service": "Clients are sent to a broker that is gone, and its partitions get "
    "no other leader.",
    "missing record": "What is committed must be in every log; here fewer copies keep it than were "
    "promised.",
    "offset that went back": "Work that was done and acknowledged is done again from there on, and "
    "its outputs are written twice.",
    "zombie not fenced": "Whoever was taken for dead goes on beside its successor, and both do the "
    "same work.",
    "broken sequence": "A broker that takes a number twice has a record twice, and one that passes "
    "over a number has lost a record that its producer believes to be there.",
    "epoch that went back": "A node that forgets its epoch may vote again in one that it has voted "
    "in, and so elect a second leader.",
    "view that went back": "A client that was told of a topic finds it gone, or as it was before.",
    "view of something never committed": "A client was shown what never was, or what may still be "
    "taken back.",
}

_PICTURES: Final = {
    names.STALE_READ: (
        "process 1   |-- write 4 --| ok\n"
        "process 2                      |-- read --| 3\n"
        "            time ------------------------------->  4 was acknowledged first"
    ),
    names.LOST_WRITE: (
        "process 1   |-- write 4 --| ok\n"
        "process 2                      |-- read --| 3     through n1\n"
        "process 3                      |-- read --| 3     through n2\n"
        "            no later answer shows 4"
    ),
    names.DIRTY_READ: (
        "process 1   |-- write 4 --| fail (certainly did not happen)\n"
        "process 2                      |-- read --| 4"
    ),
    names.PHANTOM_VALUE: (
        "process 1   |-- write 3 --| ok\n"
        "process 2                      |-- read --| 7     nobody ever wrote 7"
    ),
    names.FORK: (
        "process 1   |-- add a --| ok         |-- read --| [a]\n"
        "process 2   |-- add b --| ok         |-- read --| [b]\n"
        "            each answer lacks what the other one shows"
    ),
    names.LOST_UPDATE: (
        "process 1   |-- cas 1 to 2 --| ok\n"
        "process 2                        |-- cas 1 to 5 --| ok     the 2 is gone"
    ),
    names.DOUBLE_CAS: (
        "            the value was set to 1 once\n"
        "process 1   |-- cas 1 to 2 --| ok\n"
        "process 2     |-- cas 1 to 3 --| ok     both found 1, and both took it"
    ),
    names.DOUBLE_GRANT: (
        "process 1   |-- acquire --| ok\n"
        "process 2                      |-- acquire --| ok     nobody released"
    ),
    names.DUPLICATE: (
        "process 1   |-- enqueue a --| ok\n"
        "process 2                        |-- dequeue --| a\n"
        "process 3                                         |-- dequeue --| a"
    ),
    names.REORDER: (
        "process 1   |-- enqueue a --| ok   |-- enqueue b --| ok\n"
        "process 2                                               |-- dequeue --| b"
    ),
    names.STALE_TOKEN: (
        "process 1   holds the lock with token 1, sleeps ...... |-- write, 1 --| ok\n"
        "process 2        gets it with token 2   |-- write, 2 --| ok"
    ),
    names.SPLIT_BRAIN: (
        "n1   leads epoch 5   ------ acknowledges write a at offset 9 ------\n"
        "n3   leads epoch 5   ------ acknowledges write b at offset 9 ------"
    ),
    names.FENCED_COMMIT: (
        "process 1   member of generation 1, sleeps ......... |-- commit 4 --| ok\n"
        "process 2        |-- consume --| generation 2, the same log"
    ),
    names.PASSED_OVER: (
        "log         0: a   1: b   2: c\n"
        "process 1   |-- consume --| a   |-- commit 1 --| ok\n"
        "process 2        |-- consume --| c    |-- commit 3 --| ok"
    ),
    "read that went back": "process 1   |-- read --| 4   |-- read --| 3",
    "own write not seen": "process 1   |-- write 4 --| ok   |-- read --| 3",
}

_SOURCES: Final = {
    names.DIRTY_READ: f"{_ADYA} (G1a, aborted read)",
    names.LOST_UPDATE: f"{_ADYA} (lost update)",
    names.FORK: "Sovran and others 2011 (long fork)",
    names.STALE_READ: _HERLIHY,
    names.LOST_WRITE: _HERLIHY,
    names.NOT_LINEARIZABLE: _HERLIHY,
    names.SPLIT_BRAIN: "Ongaro and Ousterhout 2014 (Raft), section 5.2",
    names.STALE_TOKEN: "Kleppmann 2016 (how to do distributed locking)",
    names.TWO_HOLDERS: "KIP-932 (acquisition locks)",
    names.FENCED_COMMIT: "KIP-848 (fencing by member epochs)",
    "read that went back": "Terry and others 1994 (session guarantees)",
    "own write not seen": "Terry and others 1994 (session guarantees)",
}


def anomalies() -> tuple[Explanation, ...]:
    """Return all of them, the most telling ones of linearizability first."""
    return (*_of_single_objects(), *transaction_anomalies())


def _of_single_objects() -> tuple[Explanation, ...]:
    return tuple(
        Explanation(
            name=name,
            says=f"{meaning[0].upper()}{meaning[1:]}.",
            why=_WHY.get(name, ""),
            breaks=_PICTURES.get(name, ""),
            next_step=_NEXT_STEP,
            source=_SOURCES.get(name, ""),
        )
        for name, meaning in {**MEANINGS, **_MEANINGS_OF_OTHERS}.items()
    )
