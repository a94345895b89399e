"""Names of anomalies, and the one table from a checker's kinds to them; pure.

A name says what was observed, never why. A violation of linearizability gets its name from its
operations (``checker.anomalies.naming``), every other one from its kind. Sources: Adya 1999 (dirty
read, lost update); Jepsen's catalogue of anomalies; Sovran 2011 (long fork).
"""

from collections.abc import Mapping
from typing import Any, Final

from splitbrain.checker.transactions import levels

NOT_LINEARIZABLE: Final = "not linearizable"
DIRTY_READ: Final = "dirty read"
DOUBLE_CAS: Final = "double success of a compare-and-set"
DOUBLE_GRANT: Final = "double grant of a lock"
DOUBLE_SUCCESS: Final = "double success"
DUPLICATE: Final = "duplicate"
FENCED_COMMIT: Final = "commit of a fenced member"
FORK: Final = "fork"
CYCLIC_VERSIONS: Final = "cyclic versions"
DIRTY_UPDATE: Final = "dirty update"
FUTURE_READ: Final = "future read"
INCOMPATIBLE_ORDER: Final = "incompatible order"
CAUSALITY: Final = "causality violation"
FRACTURED: Final = "fractured read"
INTERNAL: Final = "internal inconsistency"
LONG_FORK: Final = "long fork"
LOST_UPDATE: Final = "lost update"
LOST_WRITE: Final = "lost write"
OWN_WRITE_MISSED: Final = "own write missed"
PASSED_EARLY: Final = "record passed before its delivery"
PASSED_OVER: Final = "record that a group passed over"
PHANTOM: Final = "phantom read"
PHANTOM_VALUE: Final = "phantom value"
REORDER: Final = "reorder"
SPLIT_BRAIN: Final = "split-brain"
HANGING: Final = "transaction that hangs"
PRECOMMITTED: Final = "read before commit"
SKIPPED: Final = "skipped record"
TORN: Final = "torn transaction"
TWO_HOLDERS: Final = "two holders of a record"
TWO_OWNERS: Final = "two owners of a log"
VANISHED_RECORD: Final = "record that vanished"
VANISHED: Final = "observed transaction vanishes"
STALE_READ: Final = "stale read"
STALE_TOKEN: Final = "stale token accepted"  # noqa: S105 - a name
WRONG_REFUSAL: Final = "wrong refusal"

#: Names of violations of linearizability, most telling first, and what each says.
MEANINGS: Final[Mapping[str, str]] = {
    DIRTY_READ: "an answer shows the value of a write that certainly failed",
    PHANTOM_VALUE: "an answer shows a value that nobody had asked to write by then",
    FORK: "two lines of history exist side by side, each with something that the other lacks",
    LOST_WRITE: "an acknowledged write is in no later answer, and not in the state that later "
    "operations changed",
    LOST_UPDATE: "an acknowledged compare-and-set, or a number that was added, is in no later "
    "answer, and not in the state that later operations changed",
    DOUBLE_CAS: "two compare-and-sets from one value succeeded, and the value was set once",
    DOUBLE_GRANT: "a lock was granted while it was held",
    DOUBLE_SUCCESS: "two operations succeeded of which each rules out the other",
    DUPLICATE: "what was asked for once is there twice",
    REORDER: "what was acknowledged first came out last",
    STALE_TOKEN: "a write with a lower token was accepted after one with a higher token",
    WRONG_REFUSAL: "an operation was refused although its condition held",
    STALE_READ: "an answer shows less than had been acknowledged, or seen, before it was asked for",
    NOT_LINEARIZABLE: "no order of the operations explains their answers; none of the names fits",
}
_RANK: Final = {name: place for place, name in enumerate(MEANINGS)}

#: Names of the kinds of all other checkers; a kind that stands here for none is its own name.
NAMES: Final[Mapping[str, Mapping[str, str]]] = {
    "set-full": {
        "lost": LOST_WRITE,
        "phantom": PHANTOM_VALUE,
        "duplicated": DUPLICATE,
        "missing-at-member": "lost write at one member",
        "stale": STALE_READ,
    },
    "counter-bounds": {"too-low": "count too low", "too-high": "count too high"},
    "bank": {
        "wrong-total": "wrong total",
        "no-balance": "missing balance",
        "negative-balance": "negative balance",
    },
    "queue-totals": {"lost": LOST_WRITE, "phantom": PHANTOM_VALUE, "duplicated": DUPLICATE},
    "unique-ids": {"duplicated": DUPLICATE},
    "sessions": {
        "monotonic-reads": "read that went back",
        "read-your-writes": "own write not seen",
    },
    "fencing": {"lower-token-accepted": STALE_TOKEN},
    "log": {
        "lost": LOST_WRITE,
        "vanished": VANISHED_RECORD,
        "torn-transaction": TORN,
        "inconsistent-offsets": FORK,
        "duplicated": DUPLICATE,
        "phantom": PHANTOM_VALUE,
        "aborted-read": DIRTY_READ,
        "precommitted-read": PRECOMMITTED,
        "hanging-transaction": HANGING,
        "future-read": FUTURE_READ,
        "G1c": levels.G1C,
        "end-went-back": "end that went back",
        "nonmonotonic-send": REORDER,
        "nonmonotonic-poll": "poll that went back",
        "skipped-poll": SKIPPED,
    },
    "groups": {
        "lost-commit": LOST_WRITE,
        "two-owners": TWO_OWNERS,
        "outdated-commit-accepted": FENCED_COMMIT,
        "phantom-offset": PHANTOM_VALUE,
        "delivered-to-nobody": PASSED_OVER,
        "passed-before-delivery": PASSED_EARLY,
        "stale-offset": STALE_READ,
    },
    "split-brain": {
        "two-leaders-in-one-epoch": SPLIT_BRAIN,
        "different-committed-records": FORK,
        "committed-record-missing": "missing record",
        "epoch-goes-back": "epoch that went back",
        "success-without-record": LOST_WRITE,
    },
    "lost-commits": {
        "lost": LOST_WRITE,
        "different-committed-records": FORK,
        "committed-record-missing": "missing record",
    },
    "member-digests": {"digests-differ": FORK},
    "exactly-once": {
        "lost-input": LOST_WRITE,
        "lost-output": LOST_WRITE,
        "duplicated-output": DUPLICATE,
        "output-without-offset": TORN,
        "phantom-output": PHANTOM_VALUE,
        "offset-went-back": "offset that went back",
        "zombie-not-fenced": "zombie not fenced",
    },
    "share-groups": {
        "lost-record": LOST_WRITE,
        "redelivered": DUPLICATE,
        "two-holders": TWO_HOLDERS,
        "phantom-record": PHANTOM_VALUE,
        "stale-delivery": STALE_READ,
    },
    "replicas": {
        "different-records": FORK,
        "record-missing": "missing record",
        "unlike-final-read": FORK,
        "epoch-goes-back": "epoch that went back",
        "number-out-of-order": "broken sequence",
    },
    "broker-sessions": {"silent-not-fenced": "silent broker in service"},
    "deposed-leaders": {"deposed-leader-goes-on": "deposed leader that goes on"},
    "transactions": {
        # Adya's names of cycles, and of G1a and G1b, are the field's.
        **{anomaly: anomaly for anomaly in levels.ANOMALIES},
        levels.LOST: LOST_WRITE,
        levels.PHANTOM: PHANTOM,
        levels.PHANTOM_VALUE: PHANTOM_VALUE,
        levels.DUPLICATE_ELEMENTS: DUPLICATE,
        levels.INCOMPATIBLE_ORDER: INCOMPATIBLE_ORDER,
        levels.DIRTY_UPDATE: DIRTY_UPDATE,
        levels.FUTURE_READ: FUTURE_READ,
        levels.INTERNAL: INTERNAL,
        levels.CYCLIC_VERSIONS: CYCLIC_VERSIONS,
        levels.LOST_UPDATE: LOST_UPDATE,
        levels.LONG_FORK: LONG_FORK,
        levels.OWN_WRITE_MISSED: OWN_WRITE_MISSED,
        levels.VANISHED: VANISHED,
        levels.FRACTURED: FRACTURED,
        levels.CAUSALITY: CAUSALITY,
    },
    "broker-views": {
        "view-went-back": "view that went back",
        "view-not-as-committed": "view of something never committed",
    },
}


def name_of_kind(checker: str, kind: str) -> str:
    """Return the name of a kind of violation of a checker, named as in verdicts."""
    if kind == "not-linearizable":
        return NOT_LINEARIZABLE
    return NAMES.get(checker.partition(":")[0], {}).get(kind, kind)


def name_of(checker: str, violation: Mapping[str, Any]) -> str:
    """Return the name of a violation; results of earlier versions have that of their kind."""
    anomaly = violation.get("anomaly")
    if isinstance(anomaly, str):
        return anomaly
    return name_of_kind(checker, str(violation.get("kind", "undescribed")))


def rank_of(name: str) -> int:
    """Return the place of a name among those of ``MEANINGS``, the most telling one first."""
    return _RANK.get(name, len(_RANK))
