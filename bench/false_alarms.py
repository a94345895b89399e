"""Runs a correct system under every kind of fault, within the promise, and counts the alarms.

``python -m bench.false_alarms [--ledger runs/false-alarms.jsonl] [--runs 200] [--jobs 2]
[--time-budget 3600]``: run number n draws its mix of faults, workload, cluster and length from n
alone, goes in a process of its own and becomes one line of the ledger; in a third of the runs
faults overlap. A campaign goes on where the ledger ends, until it holds ``--runs`` runs or the time
is up. Faults that may make a voter forget are held to the promise by each run itself, at their
moment; an unsettled one is recorded there as not applicable.

Prints what ``bench.alarm_ledger`` sums up over the whole ledger; the last line is one JSON object.
``--again 17,20`` does these runs once more; their last lines count.

The first Ctrl-C, or SIGTERM, lets the runs that are under way end and begins no more.

Exits with 1 where an alarm is false or unexplained. ``--explain 17 "WORDS"`` writes down what the
alarm of run 17 was, with ``--false`` where it was false; ``--report-only`` runs nothing.
"""

import argparse
import random
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

import msgspec

from bench.alarm_ledger import (
    Explained,
    RunLine,
    append_line,
    as_json,
    fault_line,
    read_lines,
    summary_lines,
    summed,
    verdict_word,
)
from splitbrain.harness.folder.results import Results, leading_sentence
from splitbrain.harness.folder.results import read as read_results
from splitbrain.nemesis.kinds import fault_kind, machine_kind_names

#: Kinds in one run; each twice where its time allows.
_KINDS_EACH: Final = 3
_WORKLOADS: Final = ("register", "set")
_SMALL, _LARGE = 3, 5
#: Of the runs whose faults do not need the large cluster.
_LARGE_SHARE: Final = 0.15
#: Of the runs that have faults in force side by side, and how many at once.
_OVERLAPPING_SHARE: Final = 1 / 3
_OVERLAP: Final = 2
#: Of a process that lacks its results.
_OUTPUT_TAIL: Final = 600


def tried_kinds() -> tuple[str, ...]:
    """All kinds, but for those that no system can promise to survive."""
    return tuple(kind for kind in machine_kind_names() if fault_kind(kind).rule != "lies")


def kinds_of(number: int, kinds: Sequence[str]) -> tuple[str, ...]:
    """Return the kinds of one run: drawn so that every few runs have had each of them once."""
    each = -(-len(kinds) // _KINDS_EACH)
    block, place = divmod(number, each)
    deck = list(kinds)
    random.Random(f"false-alarms/kinds/{block}").shuffle(deck)
    return tuple(sorted(deck[place::each]))


class Mix(msgspec.Struct, frozen=True):
    """Content of one run."""

    #: Options of ``splitbrain test`` beside the faults, its seed included.
    options: tuple[str, ...]
    #: Kinds of faults as ``--nemesis`` takes them.
    faults: str
    #: How many of them may be in force at once.
    overlap: int


def mix_of(number: int, seconds: tuple[int, int]) -> Mix:
    """Draw the content of run ``number``.

    Args:
        number: of the run.
        seconds: of load, at least and at most.
    """
    draws = random.Random(f"false-alarms/{number}")
    seed = draws.randrange(1 << 31)
    workload = draws.choice(_WORKLOADS)
    kinds = kinds_of(number, tried_kinds())
    nodes = _LARGE if draws.random() < _LARGE_SHARE else _SMALL
    nodes = max([nodes, *(fault_kind(kind).nodes_min for kind in kinds)])
    if nodes == _SMALL + 1:
        nodes = _LARGE
    time_limit_s = draws.randint(*seconds)
    overlap = _OVERLAP if draws.random() < _OVERLAPPING_SHARE else 1
    options = (
        *("--seed", str(seed), "--workload", workload, "--nodes", str(nodes)),
        *("--time-limit", str(time_limit_s)),
    )
    return Mix(options, ",".join(kinds), overlap)


class Campaign:
    """Runs that are due, side by side."""

    def __init__(self, options: argparse.Namespace) -> None:
        self._options = options
        self._ledger: Path = options.ledger
        self._deadline = time.monotonic() + options.time_budget
        self._is_over = threading.Event()
        self._writing = threading.Lock()
        self._commit = _commit()

    def go_on(self) -> None:
        """Do the runs that the ledger lacks, until it has enough or the time is up."""
        done = {line.number for line in read_lines(self._ledger) if isinstance(line, RunLine)}
        due = [number for number in range(1, self._options.runs + 1) if number not in done]
        if self._options.again:
            due = [int(number) for number in self._options.again.split(",")]
        with ThreadPoolExecutor(self._options.jobs, thread_name_prefix="run") as pool:
            for future in [pool.submit(self._record_run, number) for number in due]:
                future.result()

    def end(self, number: int, _frame: object) -> None:
        """Begin no more runs; the handler of a signal, once."""
        self._is_over.set()
        signal.signal(number, signal.SIG_DFL)

    def _record_run(self, number: int) -> None:
        if self._is_over.is_set() or time.monotonic() > self._deadline:
            return
        line = self._run(number)
        if line is None:
            return
        with self._writing:
            append_line(self._ledger, line)
            print(
                f"run {number:4d}  {line.verdict:8s} {line.took_s:5.0f} s  "
                f"{sum(fault.bit for fault in line.faults)} of {len(line.faults)} faults bit  "
                f"{' '.join(line.arguments)}  {line.reason}",
                flush=True,
            )

    def _run(self, number: int) -> RunLine | None:
        mix = mix_of(number, self._options.seconds)
        arguments = (
            *("--system", self._options.system, "--runtime", self._options.runtime),
            *(*mix.options, "--nemesis", self._nemesis(number, mix)),
        )
        runs_folder: Path = self._options.runs_folder / f"run-{number}"
        shutil.rmtree(runs_folder, ignore_errors=True)
        command = [
            *(sys.executable, "-m", "splitbrain.harness.cli", "test", *arguments),
            *("--runs-folder", str(runs_folder), "--no-analyze"),
        ]
        began = time.monotonic()
        finished = subprocess.run(
            command,
            check=False,
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
            # A keyboard interrupt is ours.
            start_new_session=True,
        )
        took_s = round(time.monotonic() - began, 1)
        files = sorted(runs_folder.glob("*/*/results.json"))
        if files:
            line = self._judged_line(number, arguments, read_results(files[-1]), took_s)
        else:
            output = f"{finished.stdout}{finished.stderr}".strip()[-_OUTPUT_TAIL:]
            line = RunLine(
                number=number,
                seed=_seed(arguments),
                arguments=arguments,
                commit=self._commit,
                verdict="failed",
                reason=f"no results, exit code {finished.returncode}: {output}",
                violated=(),
                faults=(),
                took_s=took_s,
                run_folder=str(runs_folder),
                reproduce=f"splitbrain test {' '.join(arguments)}",
            )
        if line is not None and line.verdict == "valid":
            shutil.rmtree(runs_folder, ignore_errors=True)
        return line

    def _nemesis(self, number: int, mix: Mix) -> str:
        """The kinds, or a plan file beside the ledger, which stays: the reproduce line names it."""
        if mix.overlap == 1:
            return mix.faults
        plan = self._ledger.with_suffix(".plans") / f"run-{number}.toml"
        plan.parent.mkdir(parents=True, exist_ok=True)
        plan.write_text(f'nemesis = "{mix.faults}"\n\n[pace]\noverlap = {mix.overlap}\n')
        return str(plan)

    def _judged_line(
        self, number: int, arguments: tuple[str, ...], results: Results, took_s: float
    ) -> RunLine | None:
        """Return the ledger's line; None of a run that somebody ended early."""
        if results.interrupted:
            return None
        verdict = verdict_word(results)
        is_valid = verdict == "valid"
        return RunLine(
            number=number,
            seed=_seed(arguments),
            arguments=arguments,
            commit=self._commit,
            verdict=verdict,
            reason="" if is_valid else leading_sentence(results),
            violated=tuple(
                checker.checker
                for checker in results.checkers
                if checker.verdict.value == "invalid"
            ),
            faults=tuple(map(fault_line, results.faults)),
            took_s=took_s,
            run_folder=None if is_valid else results.run_folder,
            reproduce=results.reproduce,
        )


def _seconds(text: str) -> tuple[int, int]:
    low, _, high = text.partition(":")
    return int(low), int(high or low)


def _seed(arguments: Sequence[str]) -> int:
    return int(arguments[arguments.index("--seed") + 1])


def _commit() -> str:
    """Of the work tree, with a plus where files differ from it; empty outside of one."""
    done = subprocess.run(
        ["git", "describe", "--always", "--dirty=+", "--abbrev=10"],
        check=False, capture_output=True, text=True, cwd=Path(__file__).parent,
    )  # fmt: skip
    return done.stdout.strip()


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="bench.false_alarms",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--ledger", type=Path, default=Path("runs/false-alarms.jsonl"))
    parser.add_argument("--runs", type=int, default=200, help="that the ledger is to hold")
    parser.add_argument("--jobs", type=int, default=2, help="runs side by side")
    parser.add_argument(
        "--time-budget", type=float, default=float("inf"), help="seconds; no run begins after it"
    )
    parser.add_argument(
        "--seconds", type=_seconds, default=(18, 22), help="of load, LOW:HIGH; more if it is slow"
    )
    parser.add_argument("--system", default="kraft")
    parser.add_argument("--runtime", default="docker")
    parser.add_argument("--runs-folder", type=Path, default=Path("runs/false-alarms"))
    parser.add_argument("--again", help="do these runs once more: numbers, comma-separated")
    parser.add_argument("--report-only", action="store_true")
    parser.add_argument("--explain", nargs=2, metavar=("NUMBER", "WORDS"))
    parser.add_argument("--false", action="store_true", dest="is_false_alarm")
    return parser.parse_args()


def main() -> int:
    """Go on, print, and say by the exit code whether an alarm is false or unexplained."""
    options = _options()
    if options.explain:
        number, cause = options.explain
        append_line(options.ledger, Explained(int(number), options.is_false_alarm, cause))
    elif not options.report_only:
        campaign = Campaign(options)
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, campaign.end)
        campaign.go_on()
    lines = read_lines(options.ledger)
    total = summed(lines, tried_kinds())
    print("\n".join(summary_lines(total, lines)))
    print(as_json(total, ledger=str(options.ledger), system=options.system))
    return 1 if total.false_alarms else 0


if __name__ == "__main__":
    sys.exit(main())
