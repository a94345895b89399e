"""Runs one plan again and again and counts the verdicts: "k of n", never "it works".

``python -m bench.campaign --runs 10 --first-seed 1 --expect invalid -- --system kraft --bug NAME``
passes everything after ``--`` to ``splitbrain test`` and gives each run its own seed. A run counts
as *telling* when at least one verified fault hit the acting leader, a later epoch followed, and a
write was acknowledged in it (issue 3, item 11). Prints a table, and one JSON object on the last
line; exits with 1 if fewer runs than ``--at-least`` came out as expected.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from splitbrain.contracts.fault import FaultEvent
from splitbrain.history.records import Event
from splitbrain.history.run_folder import RunFolder

_WRITES = {"write", "cas", "add"}


class RunReport(msgspec.Struct, frozen=True):
    """Outcome of one run."""

    seed: int
    exit_code: int
    verdict: str
    vacuous: list[str]
    telling: bool
    #: None for systems whose nodes do not tell.
    elections: int | None
    longest_unavailability_ms: float | None
    #: Checkers that said invalid.
    violated: list[str]
    #: Planned faults; a run without any cannot be telling.
    faults: int = 0
    #: Share of the acknowledged elements or changes that are lost; None where nothing tells.
    lost_percent: float | None = None
    #: Seconds from the start of the command to its end.
    took_s: float = 0.0


class Acknowledged(NamedTuple):
    """A successful write."""

    time: int
    epoch: int


def telling(folder: RunFolder) -> bool:
    """Whether a verified fault hit the acting leader and a write of a later epoch followed."""
    if not folder.faults.exists() or not folder.history.exists():
        return False
    faults = msgspec.json.Decoder(FaultEvent)
    events = msgspec.json.Decoder(Event)
    acknowledged = [
        Acknowledged(event.time, event.position[0])
        for event in map(events.decode, folder.history.read_bytes().splitlines())
        if event.type == "ok" and event.f in _WRITES and event.position is not None
    ]
    injected: dict[int, int] = {}
    for fault in map(faults.decode, folder.faults.read_bytes().splitlines()):
        if fault.phase == "invoked":
            injected[fault.index] = fault.time
        if fault.phase != "verified" or fault.leader is None or fault.leader not in fault.nodes:
            continue
        # Failover may be over before the fault is verified: count from its injection.
        since = injected.get(fault.index, fault.time)
        before = max((event.epoch for event in acknowledged if event.time < since), default=-1)
        if any(event.time > since and event.epoch > before for event in acknowledged):
            return True
    return False


def run_once(arguments: list[str], seed: int, runs_folder: Path) -> RunReport:
    """One run in its own process; the newest folder below ``runs_folder`` is its record."""
    command = [sys.executable, "-m", "splitbrain.harness.cli", "test", *arguments]
    command += ["--seed", str(seed), "--runs-folder", str(runs_folder)]
    began_s = time.monotonic()
    finished = subprocess.run(command, check=False, capture_output=True, text=True)
    took_s = round(time.monotonic() - began_s, 1)
    folders = [path.parent for path in runs_folder.glob("*/*/plan.json")]
    mine = [path for path in folders if path.name.endswith(f"-{seed}")]
    if not mine:
        print(finished.stdout[-2000:], finished.stderr[-2000:], file=sys.stderr)
        return RunReport(seed, finished.returncode, "none", [], False, 0, None, [])
    folder = RunFolder(max(mine))
    results: dict[str, Any] = {}
    if folder.results.exists():
        results = json.loads(folder.results.read_bytes())
    return RunReport(
        seed=seed,
        exit_code=finished.returncode,
        verdict=results.get("verdict", "none"),
        vacuous=results.get("vacuous", []),
        telling=telling(folder),
        elections=results.get("elections"),
        longest_unavailability_ms=results.get("longest_unavailability_ms"),
        violated=[c["checker"] for c in results.get("checkers", []) if c["verdict"] == "invalid"],
        faults=len(results.get("faults", [])),
        lost_percent=lost_percent(results.get("checkers", [])),
        took_s=took_s,
    )


def lost_percent(checkers: list[dict[str, Any]]) -> float | None:
    """Return the largest share that a checker calls lost of what was acknowledged."""
    shares = [
        100 * figures["lost"] / figures["acknowledged"]
        for figures in (checker.get("figures", {}) for checker in checkers)
        if "lost" in figures and figures.get("acknowledged")
    ]
    return round(max(shares), 1) if shares else None


def as_expected(report: RunReport, expect: str) -> bool:
    """valid: exit 0, nothing vacuous, telling if it had faults. invalid: a checker names it."""
    if expect == "valid":
        telling = report.telling or not report.faults
        return report.exit_code == 0 and not report.vacuous and telling
    return report.exit_code == 1 and bool(report.violated)


def main() -> int:
    """Parse, run, print; returns the exit code."""
    parser = argparse.ArgumentParser(prog="bench.campaign", description=__doc__)
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--first-seed", type=int, default=1)
    parser.add_argument("--expect", choices=("valid", "invalid"), required=True)
    parser.add_argument("--at-least", type=int, default=None)
    parser.add_argument("--runs-folder", type=Path, default=None)
    parser.add_argument("arguments", nargs=argparse.REMAINDER)
    options = parser.parse_args()
    arguments: list[str] = [a for a in options.arguments if a != "--"]
    runs_folder: Path = options.runs_folder or Path(tempfile.mkdtemp(prefix="campaign-"))
    reports: list[RunReport] = []
    for seed in range(options.first_seed, options.first_seed + options.runs):
        report = run_once(arguments, seed, runs_folder)
        reports.append(report)
        mark = "as expected" if as_expected(report, options.expect) else "NOT AS EXPECTED"
        print(
            f"seed {seed:6d}  {report.verdict:8s} exit {report.exit_code}  "
            f"elections {'-' if report.elections is None else report.elections!s:>3}  "
            f"longest unavailability {report.longest_unavailability_ms} ms  "
            f"telling {report.telling}  lost {report.lost_percent} %  "
            f"{','.join(report.violated)}  {mark}",
            flush=True,
        )
    good = sum(as_expected(report, options.expect) for report in reports)
    print(f"{good} of {len(reports)} runs were {options.expect}; folders below {runs_folder}")
    print(
        json.dumps(
            {
                "expect": options.expect,
                "as_expected": good,
                "runs": len(reports),
                "reports": msgspec.to_builtins(reports),
            }
        )
    )
    return 0 if good >= (options.at_least or len(reports)) else 1


if __name__ == "__main__":
    sys.exit(main())
