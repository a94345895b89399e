"""Runs and sweeps of a lake, from its tables, without Spark.

A run that an older version ingested has no elections, no unavailability and no reproduce line; that
line is made from the plan's columns. Source: docs/lake.md.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, get_args

import msgspec

from splitbrain.checker.anomalies.account import headline_of
from splitbrain.checker.verdict import CheckResult, Verdict
from splitbrain.harness.campaign.gate.gated_run import GatedRun, Outcome
from splitbrain.harness.campaign.gate.gated_sweep import GatedSweep, sweeps_of_rows
from splitbrain.harness.folder.results import FaultResult
from splitbrain.history.reproduce_line import line_of, tool_words
from splitbrain.history.spark_extra import require_spark
from splitbrain.spark_analysis.lake.commits import COMMITS, TABLES, Row

if TYPE_CHECKING:
    from splitbrain.spark_analysis.lake.opening import PlainTables

_UNKNOWN: Final = "unknown"
#: Columns of the plan's options, in the order of a command line.
_OPTION_COLUMNS: Final = (
    "workload",
    "nemesis",
    "time_limit_s",
    "concurrency",
    "rate",
    "seed",
    "runtime",
)
#: By the table's word; any other run is unjudged.
_OUTCOMES: Final[dict[str, Outcome]] = {outcome: outcome for outcome in get_args(Outcome)}


def is_lake(source: str) -> bool:
    """Return whether an argument names a lake: a URI, or a folder that is one."""
    path = Path(source)
    return "://" in source or ((path / COMMITS).is_dir() and (path / TABLES).is_dir())


class LakeContent(NamedTuple):
    """All that a gate finds in a lake, runs by their ids."""

    runs: tuple[GatedRun, ...]
    sweeps: tuple[GatedSweep, ...]


def read_lake(uri: str) -> LakeContent:
    """Return every run and every sweep of a lake.

    Raises:
        HarnessError: the lake cannot be read, or a later version wrote it.
        UsageError: Spark knows no such place, or is not installed.
    """
    require_spark("A lake")
    from splitbrain.spark_analysis.lake.opening import read_plainly

    tables = read_plainly(uri, ("runs", "verdicts", "faults", "sweeps", "seeds"))
    swept = sweeps_of_rows(tables.rows["sweeps"], tables.rows["seeds"], tables.systems)
    return LakeContent(tuple(_runs_of(uri, tables)), tuple(swept))


def _runs_of(uri: str, tables: "PlainTables") -> Iterator[GatedRun]:
    verdicts, faults = _by_run(tables.rows["verdicts"]), _by_run(tables.rows["faults"])
    for row in sorted(tables.rows["runs"], key=lambda row: str(row["run_id"])):
        run_id = row["run_id"]
        system = tables.systems[run_id]
        yield _run(uri, system, row, verdicts.get(run_id, []), faults.get(run_id, []))


def _by_run(rows: list[Row]) -> dict[str, list[Row]]:
    grouped: dict[str, list[Row]] = {}
    for row in rows:
        grouped.setdefault(row["run_id"], []).append(row)
    return grouped


def _run(uri: str, system: str, row: Row, verdicts: list[Row], faults: list[Row]) -> GatedRun:
    is_changed = "changed-since" in row["damage_kinds"]
    outcome = "unjudged" if is_changed else _OUTCOMES.get(row["outcome"], "unjudged")
    checkers = () if is_changed else tuple(map(_check_result, verdicts))
    problems = (*(row["damage"] if is_changed else ()), *row["vacuous"], *row["problems"])
    # Columns since version 3 of the table.
    unavailability_ms = row.get("unavailability_max_ms")
    # Since version 4; before it as ``lake.upgrades`` has it.
    is_canary = bool(row.get("expected", row["bugs"]))
    return GatedRun(
        name=row["run_id"],
        folder=None,
        lake=uri,
        run_id=row["run_id"],
        has_history=row["operations"] > 0 and not is_changed,
        system=system,
        version=row["system_version"] or _UNKNOWN,
        workload=row["workload"] or _UNKNOWN,
        runtime=row["runtime"] or _UNKNOWN,
        seed=row["seed"],
        outcome=outcome,
        sentence=_sentence(outcome, checkers, problems),
        reproduce=row.get("reproduce") or _reproduce(system, row),
        checkers=checkers,
        faults=tuple(map(_fault, faults)),
        problems=problems,
        is_canary=is_canary,
        canary_missed=is_canary and outcome != "invalid",
        elections=row.get("elections"),
        longest_unavailability_ms=None if unavailability_ms is None else round(unavailability_ms),
        replay_of=None if row["replay_of"] is None else Path(row["replay_of"]).name,
        replayed_as=row["name"],
    )


def _check_result(row: Row) -> CheckResult:
    return CheckResult(
        checker=row["checker"],
        verdict=Verdict(row["verdict"]),
        reason=row["reason"],
        figures=msgspec.json.decode(row["figures"], type=dict[str, Any]),
        violations=tuple(msgspec.json.decode(row["violations"], type=list[dict[str, Any]])),
    )


def _fault(row: Row) -> FaultResult:
    healed = row.get("healed")
    return FaultResult(
        index=row["index"],
        kind=row["kind"],
        target=row["target"],
        verified=row["verified"],
        applied=row["applicable"],
        # The first version of the table has only the time when the rule was gone.
        healed=row["removed_ns"] is not None if healed is None else healed,
    )


def _sentence(
    outcome: Outcome, checkers: tuple[CheckResult, ...], problems: tuple[str, ...]
) -> str:
    verdicts = {"valid": None, "invalid": Verdict.INVALID}
    wanted = verdicts.get(outcome, Verdict.UNKNOWN)
    reasons = [headline_of(result) for result in checkers if result.verdict is wanted]
    return (*reasons, *problems, f"It is {outcome}.")[0]


def _reproduce(system: str, row: Row) -> str:
    """Return a command from the columns; ``splitbrain replay`` of its folder knows more."""
    command = ["splitbrain", "test", "--system", system]
    for column in _OPTION_COLUMNS:
        if (value := row[column]) is not None:
            flag = f"--{column.removesuffix('_s').replace('_', '-')}"
            command += [flag, f"{value:g}" if isinstance(value, float) else str(value)]
    command += ["--nodes", str(len(row["nodes"]))]
    for bug in row["bugs"]:
        command += ["--bug", bug]
    return line_of(command, tool_words(row["tool_version"] or "unknown", row["tool_commit"]))
