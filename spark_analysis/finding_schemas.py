"""Declared schemas of what further jobs find in each run; rules: ``spark_analysis.schemas``."""

from typing import Final

import pyarrow as pa

from splitbrain.spark_analysis.schemas import Table, declare

_LONG: Final = pa.int64()
_DOUBLE: Final = pa.float64()
_STRING: Final = pa.string()


def _required(name: str, kind: pa.DataType) -> pa.Field:
    return pa.field(name, kind, nullable=False)


def _optional(name: str, kind: pa.DataType) -> pa.Field:
    return pa.field(name, kind, nullable=True)


#: One row per part of a run that a model judges apart; the verdict is the checker's.
PART_VERDICTS: Final[Table] = declare(
    "part_verdicts",
    1,
    _optional("key", _STRING),  # null: the run is one part, or the operations name none
    _required("model", _STRING),
    _required("verdict", _STRING),  # valid, invalid, unknown
    _required("algorithm", _STRING),
    _required("reason", _STRING),
    _required("operations", _LONG),  # judged: those that did not fail
    _required("seconds", _DOUBLE),
)

#: One row per reign, see ``jobs.elections``.
ELECTIONS: Final[Table] = declare(
    "elections",
    1,
    _required("epoch", _LONG),
    _required("leader", _STRING),
    _required("start_ns", _LONG),
    _required("end_ns", _LONG),
    _required("ended", _STRING),  # killed, stopped, fatal, restarted, resigned, run-ended
    _optional("leaderless_ms", _DOUBLE),  # before it
    _required("epoch_leaders", _LONG),  # nodes that led this epoch; over 1: split-brain
)

#: One row per pair of committed logs that differ, see ``jobs.divergence``.
DIVERGENCES: Final[Table] = declare(
    "divergences",
    1,
    _required("node_a", _STRING),
    _required("node_b", _STRING),
    _required("offset", _LONG),  # the first that differs
    _optional("epoch_a", _LONG),  # null: no record there
    _optional("digest_a", _STRING),
    _optional("epoch_b", _LONG),
    _optional("digest_b", _STRING),
)

#: One row per stale read, see ``jobs.stale_reads``.
STALE_READS: Final[Table] = declare(
    "stale_reads",
    1,
    _required("index", _LONG),
    _required("process", _LONG),
    _optional("node", _STRING),
    _optional("key", _STRING),
    _required("result", _STRING),  # JSON
    _required("start_ns", _LONG),
    _required("end_ns", _LONG),
    _required("age_ms", _DOUBLE),
    _required("age_versions", _LONG),
)

#: See ``jobs.duplicates``.
DUPLICATES: Final[Table] = declare(
    "duplicates",
    1,
    _required("kind", _STRING),  # committed, read
    _required("f", _STRING),
    _optional("key", _STRING),
    _optional("value", _STRING),  # JSON of the write or of the element
    _optional("node", _STRING),  # whose log, or that answered
    _required("count", _LONG),
    _required("expected", _LONG),  # at most
    _optional("first_offset", _LONG),  # committed: of the first record
    _optional("index", _LONG),  # read: of the operation
)

#: Operations that did not end ok.
CLIENT_ERRORS: Final[Table] = declare(
    "client_errors",
    1,
    _required("f", _STRING),
    _optional("node", _STRING),
    _required("type", _STRING),  # fail, info
    _required("error", _STRING),  # class; "none" where the client gave none
    _required("count", _LONG),
    _required("first_ns", _LONG),  # of invocations
    _required("last_ns", _LONG),
)
