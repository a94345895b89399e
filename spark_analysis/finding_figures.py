"""The gate's figures of what the jobs find in each run; ``figure_catalogue`` has all of Spark's.

Definitions are those of the jobs: ``divergence``, ``duplicates``, ``elections``, ``stale_reads``
and ``client_errors``.
"""

from typing import Final

from splitbrain.contracts.figure import RUN_DIMENSIONS, Dimension, Figure, Unit

_BY_OPERATION: Final[tuple[Dimension, ...]] = (*RUN_DIMENSIONS, "operation")
_ALL: Final = "all runs"
_WORST: Final = "the worst run"
_LOGS: Final = "runs with two dumped logs"
_LOG: Final = "runs with a dumped log"
_SETS: Final = "runs with reads of sets"
_REGISTERS: Final = "runs with reads of registers"
_EVENTS: Final = "runs with state events"
#: Of shares: fewer operations say nothing about one in a hundred.
_OPERATIONS_MIN: Final = 1000


def _bad(name: str, unit: Unit, over: str, meaning: str, samples_of: str) -> Figure:
    return Figure(
        name=name, unit=unit, better="lower", over=over, meaning=meaning, samples_of=samples_of
    )


def _outcome(name: str, meaning: str) -> Figure:
    return Figure(
        name=name,
        unit="share",
        better="lower",
        over="all operations of all runs together",
        meaning=meaning,
        dimensions=_BY_OPERATION,
        samples_of="operations",
        samples_min=_OPERATIONS_MIN,
    )


DIVERGENCE_FIGURES: Final = (
    _bad("diverged_logs", "count", _ALL, "pairs of committed logs of a run that differ", _LOGS),
)
DUPLICATE_FIGURES: Final = (
    _bad(
        *("duplicated_commits", "count", _ALL),
        "writes that stand more often in a node's committed log than they were asked for",
        _LOG,
    ),
    _bad(
        *("duplicated_elements", "count", _ALL),
        "elements that one read of a set returned more than once",
        _SETS,
    ),
)
STALE_READ_FIGURES: Final = (
    _bad("stale_reads", "count", _ALL, "reads of what was certainly overwritten", _REGISTERS),
    _bad(
        *("stale_read_max_ms", "ms", _WORST),
        "longest time for which what a read returned had been overwritten when it was invoked",
        _REGISTERS,
    ),
)
ELECTION_FIGURES: Final = (
    _bad(
        *("elections_without_fault", "count", _ALL),
        "epochs, a run's first apart, with a leader while no fault was in force, nor had been one "
        "for 5 s",
        _EVENTS,
    ),
    _bad(
        *("leaderless_max_ms", "ms", _WORST),
        "longest time between two reigns in which no node was in the role of leader",
        _EVENTS,
    ),
)
OUTCOME_FIGURES: Final = (
    _outcome("operations_failed", "share of the operations that failed"),
    _outcome("operations_open", "share of the operations of which nobody knows how they ended"),
)

FINDING_FIGURES: Final = (
    *DIVERGENCE_FIGURES,
    *DUPLICATE_FIGURES,
    *STALE_READ_FIGURES,
    *ELECTION_FIGURES,
    *OUTCOME_FIGURES,
)
