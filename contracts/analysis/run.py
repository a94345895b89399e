"""Findings of the analysis of one run: rows of the jobs' results, and ``analysis/summary.json``.

From a row's fields follow the columns of its table (``spark_analysis.schemas.table_of``), behind
``run_id``, and what is read back of them (``spark_analysis.frames.rows_of``); from ``RunAnalysis``
the file and whatever a reader of it may rely on. Definitions of what is found stand in the jobs.
Times are milliseconds since the run's start.
"""

from typing import Annotated, Any, ClassVar

import msgspec

#: Milliseconds since the run's start; the table holds whole nanoseconds, ``start_ns`` for
#: ``start_ms``.
Moment = Annotated[float, "moment"]
#: Any value of an operation; the table holds its JSON with sorted keys.
Value = Annotated[Any, "value"]


class Row(msgspec.Struct, frozen=True):
    """A row of a job's result."""

    #: Name and version of its table; a change of its columns raises the version.
    table: ClassVar[str]
    #: Whether a row is of one run, whose id is then the first column.
    is_of_run: ClassVar[bool] = True


# --- rows -----------------------------------------------------------------------------------


class OkLatency(Row, frozen=True):
    """Latency of operations of one kind that were invoked in one second.

    Quantiles are exact, linear between neighbours; None where no operation has a completion.
    """

    f: str
    second: int
    count: int
    p50_ms: float | None
    p95_ms: float | None
    p99_ms: float | None
    max_ms: float | None


class Latency(OkLatency, frozen=True):
    """The same by outcome."""

    table = "latency/1"
    #: ok, fail, info
    type: str


class Throughput(Row, frozen=True):
    """Operations that ended in one second; open ones count where they were invoked."""

    table = "throughput/1"
    second: int
    ok: int
    fail: int
    info: int


class ServiceWindow(Row, frozen=True):
    """A fault that was injected, and how the system served; see ``jobs.availability``."""

    table = "windows/1"
    index: int
    kind: str
    target: str
    nodes: list[str]
    start_ms: Moment
    end_ms: Moment
    verified: bool
    #: Share of the 100 ms slots with an acknowledged write; None without a whole slot.
    availability_before: float | None
    availability_during: float | None
    availability_after: float | None
    #: Share of ok among what was invoked; None where nothing was.
    ok_ratio_before: float | None
    ok_ratio_during: float | None
    ok_ratio_after: float | None
    #: From the injection to the first write acknowledged in a new epoch; None: no leader moved.
    failover_ms: float | None
    #: From the healing to the next acknowledged write.
    recovery_ms: float | None
    new_epoch: int | None


class Span(Row, frozen=True):
    """A time between two moments."""

    start_ms: Moment
    end_ms: Moment


class Unavailability(Span, frozen=True):
    """Longest time without an acknowledged write; no row for a run that tried no write."""

    table = "unavailability/1"
    gap_ms: float


class LostCommit(Row, frozen=True):
    """An acknowledged write that no majority of the nodes can hold."""

    table = "lost/1"
    index: int
    process: int
    f: str
    key: str | None
    argument: Value | None
    position_epoch: int | None
    position_offset: int | None
    start_ms: Moment
    end_ms: Moment | None
    #: Nodes that hold it.
    holders: int
    #: Nodes of which it cannot be said.
    unknown: int


class PhantomCommit(Row, frozen=True):
    """A committed record that the history does not explain."""

    table = "phantom/1"
    epoch: int
    offset: int
    f: str
    key: str | None
    value: Value | None
    #: Those that hold it, sorted.
    nodes: list[str]
    #: failed, duplicate, never-invoked
    reason: str


class Leader(Row, frozen=True):
    """A node in the role of leader in one epoch."""

    table = "leaders/1"
    node: str
    epoch: int
    start_ms: Moment
    end_ms: Moment


class LeaderOverlap(Row, frozen=True):
    """Two reigns of different nodes: in one epoch always, in two where they overlap in time."""

    table = "leader_overlaps/1"
    epoch_a: int
    epoch_b: int
    node_a: str
    node_b: str
    start_ms: Moment
    end_ms: Moment
    same_epoch: bool


class Reign(Row, frozen=True):
    """A leader's time in its epoch, and how it ended; see ``jobs.leadership``."""

    table = "elections/1"
    epoch: int
    leader: str
    start_ms: Moment
    end_ms: Moment
    #: killed, stopped, fatal, restarted, resigned, run-ended
    ended: str
    #: Time without a leader before it; None for the first.
    leaderless_ms: float | None
    #: Nodes that led this epoch; over 1: split-brain.
    epoch_leaders: int


class Divergence(Row, frozen=True):
    """Two committed logs that differ, from the first offset on; see ``jobs.divergence``."""

    table = "divergences/1"
    node_a: str
    node_b: str
    offset: int
    #: None: no record there.
    epoch_a: int | None
    digest_a: str | None
    epoch_b: int | None
    digest_b: str | None


class Duplicate(Row, frozen=True):
    """A write or an element that is there more often than it may be; see ``jobs.duplicates``."""

    table = "duplicates/1"
    #: committed, read
    kind: str
    f: str
    key: str | None
    #: JSON of the write or of the element.
    value: str | None
    #: Its log, or its answer.
    node: str | None
    count: int
    #: At most.
    expected: int
    #: committed: of the first record.
    first_offset: int | None
    #: read: of the operation.
    index: int | None


class StaleRead(Row, frozen=True):
    """A read of what was certainly overwritten; see ``jobs.stale_reads``."""

    table = "stale_reads/1"
    index: int
    process: int
    node: str | None
    key: str | None
    result: Value
    start_ms: Moment
    end_ms: Moment
    #: From the overwriting to the read's invocation.
    age_ms: float
    age_versions: int


class ErrorClass(Row, frozen=True):
    """Operations that failed alike; moments are those of invocations."""

    #: fail, info
    type: str
    #: "none" where the client gave none.
    error: str
    count: int
    first_ms: Moment
    last_ms: Moment


class ClientError(ErrorClass, frozen=True):
    """The same by function and node."""

    table = "client_errors/1"
    f: str
    node: str | None


# --- the summary: figures are of all rows, examples the most telling few ----------------------


class Lost(msgspec.Struct, frozen=True):
    """Acknowledged writes that the logs lack."""

    #: Acknowledged writes.
    acknowledged: int
    #: Of them; None: no log was dumped, so nothing can be said.
    missing: int | None
    examples: list[LostCommit]
    #: Of the run.
    nodes: int
    #: Dumped of them.
    logs: int


class Phantom(msgspec.Struct, frozen=True):
    """Committed records that no operation of the history explains."""

    #: Different records of the workload, over all nodes.
    committed: int
    #: Of them; None as above.
    unexplained: int | None
    examples: list[PhantomCommit]


class Reigns(msgspec.Struct, frozen=True):
    """Reigns and their ends."""

    count: int
    #: Number of reigns by how they ended.
    ended: dict[str, int]
    #: Longest time without a leader between reigns; None: there were fewer than two.
    leaderless_max_ms: float | None
    #: Those before which there was no leader for longest.
    examples: list[Reign]


class Divergences(msgspec.Struct, frozen=True):
    """Committed logs that differ."""

    #: None: fewer than two were dumped.
    pairs: int | None
    examples: list[Divergence]


class Duplicates(msgspec.Struct, frozen=True):
    """Writes and elements that are there more often than they may be."""

    #: Writes that stand too often in a committed log; None: no log was dumped.
    committed: int | None
    #: Elements that one read returned twice.
    read: int
    examples: list[Duplicate]


class StaleReads(msgspec.Struct, frozen=True):
    """Reads of what was certainly overwritten."""

    count: int
    #: None where there is none.
    age_max_ms: float | None
    age_max_versions: int | None
    #: The oldest first.
    examples: list[StaleRead]


class ClientErrors(msgspec.Struct, frozen=True):
    """Operations that did not end ok."""

    count: int
    #: The most frequent first.
    classes: list[ErrorClass]


class RunAnalysis(msgspec.Struct, frozen=True, kw_only=True):
    """Content of ``analysis/summary.json``.

    A part is None or empty where the analysis, an older one say, does not tell it.
    """

    #: Version of this layout.
    schema: int = 1
    run_id: str = ""
    #: Unreadable parts, one sentence each.
    damage: list[str] = []
    #: Of ok operations, ascending.
    latency: list[OkLatency] = []
    #: Every second from the first to the last.
    throughput: list[Throughput] = []
    windows: list[ServiceWindow] = []
    #: Both None for a run without writes.
    longest_unavailability_ms: float | None = None
    unavailability: Span | None = None
    #: Epochs in which a node led.
    elections: int = 0
    lost: Lost | None = None
    phantom: Phantom | None = None
    leaders: list[Leader] = []
    #: Those of one epoch first.
    leader_overlaps: list[LeaderOverlap] = []
    reigns: Reigns | None = None
    divergences: Divergences | None = None
    duplicates: Duplicates | None = None
    stale_reads: StaleReads | None = None
    client_errors: ClientErrors | None = None
    #: How long the jobs took.
    seconds: float = 0.0
