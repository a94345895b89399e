"""The figures that Spark computes for the release gate; needs no Spark to be read.

``finding_figures`` has those of what is found in each run, ``gate_figures`` computes all of them,
``docs/gate.md`` lists them. Latencies are those of ok operations that are no final reads, cut to
whole microseconds; windows are those of ``jobs.availability``, of faults that were seen to bite.
Quantiles are exact and linear between neighbours.
"""

from typing import Final

from splitbrain.contracts.figure import RUN_DIMENSIONS, Better, Dimension, Figure, Unit
from splitbrain.spark_analysis.finding_figures import FINDING_FIGURES

#: Samples that a quantile takes before a change of it means anything: ten beyond it.
_P50_MIN: Final = 20
_P95_MIN: Final = 200
_P99_MIN: Final = 1000
#: Faults are few; what is behind a quantile of theirs is told beside it.
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
THROUGHPUT_FIGURES: Final = (
    Figure(
        name="throughput_mean",
        unit="per-second",
        better="higher",
        over="all runs, each counted once",
        meaning="ok operations a second, from the first to the last second of a run",
        samples_of="runs",
    ),
    Figure(
        name="throughput_min",
        unit="per-second",
        better="higher",
        over="the worst run",
        meaning="ok operations a second, from the first to the last second of a run",
        samples_of="runs",
    ),
)
LEADERSHIP_FIGURES: Final = (
    Figure(
        name="split_brain_epochs",
        unit="count",
        better="lower",
        over="all runs",
        meaning="epochs in which two nodes led",
        samples_of="runs with state events",
    ),
    Figure(
        name="leader_overlap_max_ms",
        unit="ms",
        better="lower",
        over="the worst run",
        meaning="longest time for which the leaders of two epochs both believed to lead",
        samples_of="runs with state events",
    ),
)
PHANTOM_FIGURES: Final = (
    Figure(
        name="phantom_commits",
        unit="count",
        better="lower",
        over="all runs with a dumped log",
        meaning="committed records that no operation explains",
        samples_of="runs with a dumped log",
    ),
)

SPARK_FIGURES: Final = (
    *LATENCY_FIGURES,
    *WINDOW_FIGURES,
    *THROUGHPUT_FIGURES,
    *LEADERSHIP_FIGURES,
    *PHANTOM_FIGURES,
    *FINDING_FIGURES,
)
