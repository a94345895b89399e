"""By how much it helps a replay that a fault waits for an event, and not for a time.

Run as ``python -m bench.pinned [--cells A,B] [--times 5] [--attempts 5] [--runtime docker]
[--runs-folder PATH]``. The cells are those of ``bench/suites/planted.toml`` whose plan pins a fault
to an event. Each is run until it has failed once. That run is then replayed twice over, so often
each: as it was planned, and with every pinned fault struck at the very time of the recorded run.
Printed is how many replays failed with the same verdict, both ways. Nothing here judges a run. The
last line is one JSON object.
"""

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import msgspec

from bench.campaign import run_once
from bench.planted_containers import SUITE, Wanted, carried, series_of
from splitbrain.contracts.errors import UsageError
from splitbrain.contracts.fault import Fault, FaultEvent
from splitbrain.harness.campaign.replaying.verdicts import ReplayVerdict, recorded_verdict
from splitbrain.harness.campaign.suite.definition import choice_of
from splitbrain.harness.campaign.suite.reading import read_suite
from splitbrain.history.course import read_phases
from splitbrain.history.run_folder import RunFolder
from splitbrain.history.schedule_lines import decode_schedule
from splitbrain.nemesis.targets import LAST_LEADER, LEADER, THERE

_NS_PER_US: Final = 1_000


class Rate(msgspec.Struct, frozen=True):
    """Results of the replays of one kind."""

    replays: int
    #: Failed with the verdict of the recorded run.
    same: int
    #: Failed at all.
    invalid: int


class Compared(msgspec.Struct, frozen=True):
    """One failing run, replayed both ways."""

    cell: str
    recorded: str
    pinned: Rate
    timed: Rate

    @property
    def ratio(self) -> float | None:
        """Rate of equal verdicts with events, over that with times; None: times had none."""
        if not (self.timed.same and self.pinned.replays):
            return None
        return (self.pinned.same / self.pinned.replays) / (self.timed.same / self.timed.replays)


def pinned_cells(suite: Path = SUITE) -> tuple[str, ...]:
    """Names of the cells whose plan has a fault that waits for an event."""
    return tuple(
        matrix.name
        for matrix in read_suite(suite).suite.matrix
        if isinstance(nemesis := choice_of(matrix, "nemesis"), str)
        and nemesis.endswith(".toml")
        and "when = {" in Path(nemesis).read_text()
    )


def struck_by_time(
    schedule: Sequence[Fault], faults: Sequence[FaultEvent], load_start: int
) -> tuple[Fault, ...]:
    """The schedule with each waiting fault at the time at which it struck, and waiting no more.

    A target that only a waiting fault can have becomes the leader where that was hit, else the one
    before it.

    Args:
        schedule: as planned.
        faults: as it went.
        load_start: ns since the run's start.
    """
    invoked = {fault.index: fault for fault in faults if fault.phase == "invoked"}
    timed: list[Fault] = []
    for fault in schedule:
        event = invoked.get(fault.index)
        if fault.when is None or event is None:
            timed.append(msgspec.structs.replace(fault, when=None))
            continue
        target = fault.target
        if target == THERE:
            target = LEADER if event.leader in event.nodes else LAST_LEADER
        at_us = max(0, round((event.time - load_start) / _NS_PER_US))
        timed.append(msgspec.structs.replace(fault, when=None, at_us=at_us, target=target))
    return tuple(sorted(timed, key=lambda fault: fault.at_us))


def timed_copy(run: RunFolder, copy: Path) -> RunFolder:
    """Return a folder of the same run whose faults strike by time; enough of it to be replayed."""
    copy.mkdir(parents=True)
    for file in (run.plan, run.results):
        shutil.copy(file, copy / file.name)
    schedule, _ = decode_schedule(run.schedule.read_bytes().splitlines())
    faults = [
        msgspec.json.decode(line, type=FaultEvent) for line in run.faults.read_bytes().splitlines()
    ]
    load_start = next(
        phase.time for phase in read_phases(run.root) if phase.phase == "load-started"
    )
    lines = [msgspec.json.encode(fault) for fault in struck_by_time(schedule, faults, load_start)]
    made = RunFolder(copy)
    made.schedule.write_bytes(b"\n".join(lines) + b"\n")
    return made


def replayed(run: Path, times: int, folder: Path) -> Rate:
    """Replay a run so often, each into the folder, and count the verdicts."""
    recorded = recorded_verdict(RunFolder(run))
    folder.mkdir(parents=True)
    command = [
        sys.executable,
        "-m",
        "splitbrain.harness.cli",
        "replay",
        str(run),
        "--times",
        str(times),
    ]
    command += ["--runs-folder", str(folder), "--no-analyze"]
    finished = subprocess.run(command, check=False, capture_output=True, text=True)
    (folder / "output.log").write_text(finished.stdout + finished.stderr)
    return rate(recorded, [verdict for run in _runs(folder) if (verdict := recorded_verdict(run))])


def rate(recorded: ReplayVerdict | None, verdicts: Sequence[ReplayVerdict]) -> Rate:
    """How many verdicts are the recorded one."""
    return Rate(
        replays=len(verdicts),
        same=sum(verdict == recorded for verdict in verdicts),
        invalid=sum(verdict.is_invalid for verdict in verdicts),
    )


def _runs(folder: Path) -> list[RunFolder]:
    return [RunFolder(plan.parent) for plan in sorted(folder.glob("*/*/plan.json"))]


def failing_run(cell: str, runtime: str, attempts: int, folder: Path) -> RunFolder | None:
    """Run a cell with one seed after the other until it fails; None if it does not.

    Raises:
        UsageError: there is no such cell.
    """
    wanted = Wanted(runtime=runtime, tries=attempts, controls=0)
    series = {plan.name: plan for plan in series_of(read_suite(SUITE).suite, wanted)}
    if cell not in series:
        raise UsageError(f"there is no cell {cell!r}", f"Use one of: {', '.join(pinned_cells())}")
    for run in series[cell].runs:
        if carried(run, folder, run_once).exit_code == 1:
            return max(_runs(folder), key=lambda recorded: recorded.root.name)
    return None


def compared(cell: str, options: argparse.Namespace, folder: Path) -> Compared | None:
    """One failing run of a cell, replayed both ways; None if none failed."""
    run = failing_run(cell, options.runtime, options.attempts, folder / "found")
    recorded = None if run is None else recorded_verdict(run)
    if run is None or recorded is None:
        return None
    timed = timed_copy(run, folder / "by-time" / run.root.name)
    return Compared(
        cell=cell,
        recorded=recorded.text,
        pinned=replayed(run.root, options.times, folder / "pinned"),
        timed=replayed(timed.root, options.times, folder / "timed"),
    )


def main() -> int:
    """Compare and print; 2 where a cell did not fail once."""
    parser = argparse.ArgumentParser(prog="bench.pinned", description=__doc__)
    parser.add_argument("--cells", default="", help="comma-separated; all with events by default")
    parser.add_argument("--times", type=int, default=5, help="replays each way")
    parser.add_argument("--attempts", type=int, default=5, help="runs to find a failing one")
    parser.add_argument("--runtime", default="docker", choices=("docker", "local"))
    parser.add_argument("--runs-folder", type=Path, default=None)
    options = parser.parse_args()
    folder: Path = options.runs_folder or Path(tempfile.mkdtemp(prefix="pinned-"))
    cells = [name for name in options.cells.split(",") if name] or pinned_cells()
    results: list[Compared] = []
    for number, cell in enumerate(cells):
        result = compared(cell, options, folder / f"{number:02}")
        if result is None:
            print(f"{cell}: no run failed in {options.attempts}", flush=True)
            continue
        results.append(result)
        print("\n".join(_lines(result)), flush=True)
    print(json.dumps({"bench": "pinned", "cells": [_row(result) for result in results]}))
    return 0 if len(results) == len(cells) else 2


def _lines(result: Compared) -> list[str]:
    def sentence(rate: Rate) -> str:
        return f"{rate.same} of {rate.replays} with the same verdict, {rate.invalid} invalid"

    by = "no ratio: none by time" if result.ratio is None else f"{result.ratio:.1f} times as often"
    return [
        f"{result.cell}: {result.recorded}",
        f"    faults wait for events: {sentence(result.pinned)}",
        f"    faults strike by time:  {sentence(result.timed)}",
        f"    {by}",
    ]


def _row(result: Compared) -> dict[str, object]:
    return {**msgspec.to_builtins(result), "ratio": result.ratio}


if __name__ == "__main__":
    sys.exit(main())
