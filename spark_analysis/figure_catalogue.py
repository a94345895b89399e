"""Catalogue of the figures that Spark computes for the release gate; needs no Spark to be read.

``gate_figures`` computes all of them, ``docs/gate.md`` lists them. Latencies are those of ok
operations other than final reads, cut to whole microseconds; windows are those of
``jobs.availability``, of faults that were seen to bite. Quantiles are exact and linear between
neighbours.
"""

from typing import Final

from splitbrain.contracts.figure import RUN_DIMENSIONS, Better, Dimension, Figure, Unit

#: Samples below which a change of a quantile means nothing: ten beyond it.
_P50_MIN: Final = 20
_P95_MIN: Final = 200
_P99_MIN: Final = 1000
#: For shares: fewer operations say nothing about one in a hundred.
_OPERATIONS_MIN: Final = 1000
#: Faults are few; the sample size of their quantiles is reported beside them.
_FAULTS_MIN: Final = 10

_BY_OPERATION: Final[tuple[Dimension, ...]] = (*RUN_DIMENSIONS, "operation")
_BY_FAULT: Final[tuple[Dimension, ...]] = (*RUN_DIMENSIONS, "fault")


def _latency(name: str, over: str, meaning: str, samples_min: int) -> Figure:
    return Figure(
        name=name,
        unit="ms",
        better="lower",
        over=over,
        meaning=meaning,
        dimensions=_BY_OPERATION,
        samples_of="ok operations",
        samples_min=samples_min,
    )


def _window(name: str, unit: Unit, better: Better, over: str, meaning: str) -> Figure:
    return Figure(
        name=name,
        unit=unit,
        better=better,
        over=over,
        meaning=meaning,
        dimensions=_BY_FAULT,
        samples_of="faults",
        samples_min=_FAULTS_MIN,
    )


_POOLED: Final = "all operations of all runs together"
_FAILED_OVER: Final = "all faults that moved the leader"
_RECOVERED: Final = "all faults after which a write was acknowledged before the next"
_FAILOVER: Final = "time from the injection to the first write acknowledged in a new epoch"
_RECOVERY: Final = "time from the healing to the first acknowledged write invoked after it"

LATENCY_FIGURES: Final = (
    _latency("latency_p50_ms", _POOLED, "median latency", _P50_MIN),
    _latency("latency_p95_ms", _POOLED, "latency that 95 % stay below", _P95_MIN),
    _latency("latency_p99_ms", _POOLED, "latency that 99 % stay below", _P99_MIN),
    _latency("latency_max_ms", _POOLED, "longest latency", 1),
    _latency("latency_p99_worst_ms", "the worst run", "latency that 99 % stay below", _P99_MIN),
)
WINDOW_FIGURES: Final = (
    _window("failover_p50_ms", "ms", "lower", _FAILED_OVER, f"median of the {_FAILOVER}"),
    _window("failover_p99_ms", "ms", "lower", _FAILED_OVER, f"99th percentile of the {_FAILOVER}"),
    _window("failover_max_ms", "ms", "lower", _FAILED_OVER, f"longest {_FAILOVER}"),
    _window("recovery_p50_ms", "ms", "lower", _RECOVERED, f"median of the {_RECOVERY}"),
    _window("recovery_p99_ms", "ms", "lower", _RECOVERED, f"99th percentile of the {_RECOVERY}"),
    _window("recovery_max_ms", "ms", "lower", _RECOVERED, f"longest {_RECOVERY}"),
    _window(
        *("availability_min", "share", "higher", "the worst fault"),
        "share of the tenths of a second under a fault in which a write was acknowledged",
    ),
    _window(
        *("availability_mean", "share", "higher", "all faults, each counted once"),
        "share of the tenths of a second under a fault in which a write was acknowledged",
    ),
)
THROUGHPUT_FIGURES: Final = tuple(
    Figure(
        name=name,
        unit="per-second",
        better="higher",
        over=over,
        meaning="ok operations a second, from the first to the last second of a run",
        samples_of="runs",
    )
    for name, over in (
        ("throughput_mean", "all runs, each counted once"),
        ("throughput_min", "the worst run"),
    )
)
OUTCOME_FIGURES: Final = tuple(
    Figure(
        name=name,
        unit="share",
        better="lower",
        over=_POOLED,
        meaning=meaning,
        dimensions=_BY_OPERATION,
        samples_of="operations",
        samples_min=_OPERATIONS_MIN,
    )
    for name, meaning in (
        ("operations_failed", "share of the operations that failed"),
        ("operations_open", "share of the operations of unknown outcome"),
    )
)

# --- of what the jobs find, in runs where it could be found -----------------------------------

LOG: Final = "runs with a dumped log"
LOGS: Final = "runs with two dumped logs"
EVENTS: Final = "runs with state events"
SETS: Final = "runs with reads of sets"
REGISTERS: Final = "runs with reads of registers"
_ALL: Final = "all runs"
_WORST: Final = "the worst run"


def _found(name: str, unit: Unit, over: str, samples_of: str, meaning: str) -> Figure:
    return Figure(
        name=name, unit=unit, better="lower", over=over, meaning=meaning, samples_of=samples_of
    )


FOUND_FIGURES: Final = (
    _found("split_brain_epochs", "count", _ALL, EVENTS, "epochs in which two nodes led"),
    _found(
        *("leader_overlap_max_ms", "ms", _WORST, EVENTS),
        "longest time for which the leaders of two epochs both believed to lead",
    ),
    _found(
        *("phantom_commits", "count", "all runs with a dumped log", LOG),
        "committed records that no operation explains",
    ),
    _found(*("diverged_logs", "count", _ALL, LOGS), "pairs of committed logs of a run that differ"),
    _found(
        *("duplicated_commits", "count", _ALL, LOG),
        "writes that stand more often in a node's committed log than they were asked for",
    ),
    _found(
        *("duplicated_elements", "count", _ALL, SETS),
        "elements that one read of a set returned more than once",
    ),
    _found("stale_reads", "count", _ALL, REGISTERS, "reads of what was certainly overwritten"),
    _found(
        *("stale_read_max_ms", "ms", _WORST, REGISTERS),
        "longest time for which what a read returned had been overwritten when it was invoked",
    ),
    _found(
        *("elections_without_fault", "count", _ALL, EVENTS),
        "epochs, a run's first apart, with a leader while no fault was in force, nor had been one "
        "for 5 s",
    ),
    _found(
        *("leaderless_max_ms", "ms", _WORST, EVENTS),
        "longest time between two reigns in which no node was in the role of leader",
    ),
)

SPARK_FIGURES: Final = (
    *LATENCY_FIGURES,
    *WINDOW_FIGURES,
    *THROUGHPUT_FIGURES,
    *FOUND_FIGURES,
    *OUTCOME_FIGURES,
)
