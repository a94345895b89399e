"""Words on each checker and each model, those of packages among them; pure.

Promises of checkers are ``checker.names.PROMISES``, the sentence on a model is its docstring.
"""

import inspect
from collections.abc import Callable, Iterable, Iterator
from typing import Final

from splitbrain.checker.models.registry import model_named, model_names
from splitbrain.checker.names import KINDS, OFFERS, PROMISES, evidence_needed
from splitbrain.contracts.errors import UsageError
from splitbrain.contracts.explanation import Explanation

_LINEARIZABILITY: Final = Explanation(
    name="linearizability",
    says="Every operation seems to take effect at one instant between its call and its answer: "
    "there is one order of all of them that is true to real time and that the model allows.",
    why="It is what lets a client treat a cluster as one machine. `valid` and `invalid` are both "
    "proofs; what the search could not decide in its time is `unknown`.",
    breaks="process 1   |-- write 4 --| ok\n"
    "process 2                      |-- read --| 3     no order of the two\n"
    "            time ----------------------------->  makes 3 the answer",
    next_step="`splitbrain check FILE --model cas-register` judges any history; "
    "`splitbrain docs models-and-checkers` lists the models. A violation has a name: "
    "`splitbrain explain stale-read`.",
    source="Herlihy and Wing 1990; Wing and Gong 1993; Lowe 2017",
)

_WHY: Final = {
    "set-full": "Each element is its own witness, so a lost or a phantom one is named, with the "
    "time from its acknowledgement to its loss, in histories that are too long for a search.",
    "set-full:stale-reads-allowed": "Many stores promise no more than that nothing is lost in the "
    "end; a read that lags is no fault of theirs.",
    "counter-bounds": "Counters lose steps when two nodes add to the same old value, and count "
    "twice when a retry is carried out again.",
    "bank": "Transfers keep the sum. A read that shows another one saw a transfer by half, or a "
    "transfer was carried out by half.",
    "bank:negative-balances-allowed": "For stores that let a transfer go through without looking "
    "at the balance.",
    "queue-totals": "A queue that loses a message loses work; one that delivers twice does it "
    "again.",
    "queue-totals:duplicates-allowed": "Most queues promise delivery at least once: a duplicate is "
    "documented there, a loss is not.",
    "unique-ids": "Ids are handed out to tell things apart. Two equal ones overwrite each other.",
    "sessions": "They are what a single user notices: something that was seen is undone, or one's "
    "own change is gone.",
    "fencing": "A lock alone cannot keep out a holder that slept through its loss; the token can, "
    "if the store compares it.",
    "transactions:list-append": "An append leaves its trace in every later read, so the order of "
    "versions is seen, not guessed, and each anomaly is a cycle of facts. What is found is told "
    "with the levels that it rules out and the strongest that are left.",
    "transactions:rw-register": "Registers are what applications use, but a write hides the one "
    "before it: less can be proven than of lists.",
    "transactions:rows": "Most queries ask for all rows that fit, and most rules of an application "
    "are about them (no second booking, at least one doctor on call). Locks and versions of single "
    "rows do not see the row that is not there yet.",
    "log": "A log that others build on must not lose what it took, nor show it twice or in another "
    "order; only reads that pass over the place can tell, so each of them is followed.",
    "log:duplicates-allowed": "Without idempotence a producer that got no answer sends again: a "
    "duplicate is documented there, a loss is not.",
    "log:read-uncommitted": "It is the usual default of consumers, which then see aborted and "
    "half transactions.",
    "groups": "The committed offset is all that a group remembers of its work. Where it goes back, "
    "work is done again without end; where it goes too far, work is never done.",
    "split-brain": "Two leaders of one epoch, or two committed records at one offset, are wrong "
    "whether a client has noticed or not. It sees in the nodes' own records what answers do not "
    "show yet.",
    "lost-commits": "Reads may be answered from memory. Only the logs on disk at the end say "
    "whether what was acknowledged is still there, and on how many nodes.",
    "member-digests": "Replicas that went different ways answer alike for a long time. Their "
    "digests differ at once, also where no client ever reads.",
    "exactly-once": "A pipeline that ends between its output and its offset does its work twice, "
    "or never. A transaction over both is what people rely on who count money with it.",
    "share-groups": "A share group is a queue on a log: whoever takes work from it relies on "
    "nobody else doing that work meanwhile, on its being over once it is accepted, and on none of "
    "it being passed over.",
    "replicas": "A leader answers for its followers, also where one of them has something else on "
    "its disk. Clients see that once it leads, which may be never in a run.",
    "broker-views": "Clients ask a broker, not the quorum. A broker that goes back in time sends "
    "them to leaders that are no more.",
    "broker-sessions": "What a dead broker leads nobody else may lead before it is fenced. No "
    "client is told anything wrong meanwhile: its partitions are just not served.",
    "deposed-leaders": "Such a leader commits nothing and does no harm to what was acknowledged. "
    "Those that reach it alone ask it for ever, though: they are stuck until somebody restarts it.",
}
_SOURCES: Final = {
    "sessions": "Terry and others 1994 (session guarantees)",
    "transactions:list-append": "Adya 1999; Kingsbury and Alvaro 2020 (Elle)",
    "transactions:rw-register": "Adya 1999; Kingsbury and Alvaro 2020 (Elle)",
    "transactions:rows": "Adya 1999, section 4.3; Berenson and others 1995 (phantoms)",
    **dict.fromkeys(
        ("log", "log:duplicates-allowed", "log:read-uncommitted"),
        "KIP-98, KIP-207, KIP-447; Jepsen's workload of logs",
    ),
    "exactly-once": "KIP-98 and KIP-447 (transactions that commit offsets)",
    "share-groups": "KIP-932 (share groups)",
    "groups": "KIP-62, KIP-429, KIP-848 (rebalance protocols); KIP-1251",
    "fencing": "Kleppmann 2016 (how to do distributed locking)",
    "split-brain": "Ongaro and Ousterhout 2014 (Raft), section 5",
    "lost-commits": "Ongaro and Ousterhout 2014 (Raft), section 5.4",
    "broker-views": "KIP-631",
    "broker-sessions": "KIP-631",
    "deposed-leaders": "Ongaro 2014 (thesis), section 6.2",
}
_MODEL_WHY: Final = (
    "A model is the object as it would be on one machine; linearizability holds answers to it."
)


def checkers() -> Iterator[Explanation]:
    """Yield the words on every checker; of a package's those that it declares."""
    yield _LINEARIZABILITY
    for name, promise in PROMISES.items():
        kinds = ", ".join(f"`{kind}`" for kind in KINDS.get(name, ()))
        yield Explanation(
            name=name,
            says=promise,
            why=_WHY.get(name, ""),
            next_step=_next_step(name, kinds),
            source=_SOURCES.get(name, ""),
        )
    yield from _each(sorted(OFFERS.names()), _checker_of_a_package)


def models() -> Iterator[Explanation]:
    """Yield the words on every model."""
    yield from _each(model_names(), _model)


def _next_step(name: str, kinds: str) -> str:
    seen = f"It tells of {kinds}. " if kinds else ""
    if evidence_needed(name):
        return f"{seen}A run judges with it where the system gives that evidence."
    model = name.removeprefix("transactions:")
    return f"{seen}`splitbrain check FILE --model {model}` judges any history with it."


def _each(names: Iterable[str], explain: Callable[[str], Explanation]) -> Iterator[Explanation]:
    """Yield words on each; of what a package offers and cannot be used, why it cannot."""
    for name in names:
        try:
            yield explain(name)
        except UsageError as error:
            yield Explanation(name=name, says=f"{error.problem}.", next_step=f"{error.next_step}.")


def _checker_of_a_package(name: str) -> Explanation:
    checker = OFFERS.offered(name)
    assert checker is not None
    return Explanation(name=name, says=checker.promise or _documented(type(checker), "checker"))


def _model(name: str) -> Explanation:
    return Explanation(
        name=name,
        says=_documented(type(model_named(name)), "model"),
        why=_MODEL_WHY,
        next_step=f"`splitbrain check FILE --model {name}` judges a history against it.",
    )


def _documented(kind: type, noun: str) -> str:
    """Return the first paragraph of a class's own docstring."""
    text = inspect.cleandoc(kind.__dict__.get("__doc__") or "")
    first = " ".join(text.partition("\n\n")[0].split())
    return first or f"A {noun} of an installed package, which says nothing about itself."
