"""Declared schemas of the results over all runs of a lake; ``schemas`` has those of each run."""

from typing import Final

import pyarrow as pa

from splitbrain.spark_analysis.schemas import Table, declare_across

_LONG: Final = pa.int64()
_STRING: Final = pa.string()
_STRINGS: Final = pa.list_(_STRING)
_TIMESTAMP: Final = pa.timestamp("us", tz="UTC")


def _fields(kind: pa.DataType, *names: str, nullable: bool = False) -> list[pa.Field]:
    return [pa.field(name, kind, nullable) for name in names]


#: How many runs came out how, by what they were. A run stands in the row of each kind of fault that
#: was injected into it, so that rows do not add up; ``none`` where there was none.
OUTCOME_MATRIX: Final[Table] = declare_across(
    "outcome_matrix",
    1,
    *_fields(_STRING, "system", "version", "workload", "fault"),
    *_fields(pa.bool_(), "planted"),  # runs with a planted bug stand apart
    *_fields(_LONG, "runs", "valid", "invalid", "unknown", "vacuous", "failed", "unjudged"),
    *_fields(_STRINGS, "examples"),  # ids of runs that are not valid, the worst first
)

#: What faults met over all runs; runs with a planted bug count too.
FAULT_COVERAGE: Final[Table] = declare_across(
    "fault_coverage",
    1,
    *_fields(_STRING, "system", "workload", "kind", "role", "phase"),
    *_fields(_LONG, "runs", "faults", "bitten"),
)

#: One row per run and fingerprint of what a checker found in it.
RUN_FINGERPRINTS: Final[Table] = declare_across(
    "run_fingerprints",
    1,
    *_fields(_STRING, "run_id", "checker", "fingerprint", "kind", "shape"),
)

#: One row per fingerprint: met since a moment, before it, or both.
FAILURES: Final[Table] = declare_across(
    "failures",
    1,
    *_fields(_STRING, "fingerprint", "checker", "kind", "shape"),
    *_fields(_STRING, "state"),  # new, known, resolved (not met again)
    *_fields(pa.bool_(), "planted"),  # met in runs with a planted bug alone
    *_fields(_LONG, "runs_since", "runs_before"),
    *_fields(_TIMESTAMP, "first_at", "last_at", nullable=True),  # starts of runs that met it
    *_fields(_STRING, "example"),  # id of the last of them
)

#: One row per plan and fingerprint: how often the same plan failed so.
FLAKES: Final[Table] = declare_across(
    "flakes",
    1,
    *_fields(_STRING, "plan_digest", "fingerprint", "checker", "kind"),
    *_fields(_STRING, "system", "workload", "runtime", nullable=True),
    *_fields(_LONG, "failed", "runs"),  # runs: that were judged valid or invalid
    *_fields(_STRING, "flake"),  # deterministic, sometimes, never-again, not-replayed
    *_fields(_STRING, "example"),  # id of the first run that failed so
)

#: One row per run and measure.
TREND_POINTS: Final[Table] = declare_across(
    "trend_points",
    1,
    *_fields(_STRING, "system", "workload", "runtime", "measure"),
    *_fields(_TIMESTAMP, "started_at"),
    *_fields(_STRING, "run_id"),
    *_fields(_STRING, "version", nullable=True),
    *_fields(pa.float64(), "value"),
)

#: One row per change of level of a trend.
TREND_CHANGES: Final[Table] = declare_across(
    "trend_changes",
    1,
    *_fields(_STRING, "system", "workload", "runtime", "measure"),
    *_fields(_TIMESTAMP, "started_at"),  # of the first run of the new level
    *_fields(_STRING, "run_id"),
    *_fields(pa.float64(), "before", "after", "p_value"),  # medians of the levels
    *_fields(pa.bool_(), "worse"),
)
