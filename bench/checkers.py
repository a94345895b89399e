"""Measures the checkers beside Porcupine: ``python -m bench.checkers [--rows NAMES] [--all]``.

Generates the histories of issue 7's table (``bench.checker_cases``), gives the same columns to
Porcupine and to ours, one after the other in one run, and prints for each row the CPU seconds of
the kernels (median and greatest of the seeds), the peak of memory, how many were decided within 1,
20 and 60 CPU seconds, and in the last column the wall seconds that ``splitbrain check`` takes
from JSON lines to the verdict: with one worker, with two where there are several keys, and in
brackets what it takes for a history of one operation.

Options: ``--rows corpus,cas-10-10k`` chooses rows, ``--seeds N`` and ``--limit-s S`` bound each of
them (``--seeds 3 --limit-s 5`` takes two to three minutes), ``--no-peer`` leaves Porcupine out,
``--all`` adds the rows that take minutes. Porcupine is asked no more of a row after three
histories that it did not decide, so that all of it takes half an hour (``--all --seeds 20``). The
last line is one JSON object; the exit code is 1 where a verdict was wrong.
"""

import argparse
import json
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from bench import peer
from bench.checker_cases import CASES, Case, corpus_verdicts, histories
from bench.history_columns import HistoryColumns, columns_of, save, write_events
from splitbrain.history.records import PairedOperation

_MEMORY_MIB_MAX = 8192
#: CPU seconds within which the share decided is told.
SHARES_S: Final = (1, 20, 60)
#: Histories in a row that Porcupine may leave undecided before it is asked no more of that row.
_PEER_UNDECIDED_MAX: Final = 3
_HEAD = (
    "row",
    "is",
    "who",
    "cpu median",
    "cpu max",
    "cpu sum",
    "MiB",
    "in 1/20/60 s",
    "end to end",
)
_LINE = "{:<24}{:<9}{:<11}{:>11}{:>9}{:>9}{:>7}{:>18}{:>20}"


def ask_ours(
    folder: Path, prepared: Sequence[HistoryColumns], case: Case, limit_s: float
) -> list[dict[str, Any]]:
    """Our answers, from one child process for the whole row."""
    files: list[str] = []
    for number, history in enumerate(prepared):
        path = folder / f"{number}.npz"
        save(history, path)
        files.append(str(path))
    command = [sys.executable, "-m", "bench.checker_child", *files]
    command += [f"--limit-s={limit_s}", f"--memory-mib={_MEMORY_MIB_MAX}"]
    command += [f"--repeats={case.repeats}"]
    if case.operations:
        command.append("--operations")
    if case.own_model:
        command.append(f"--model={case.own_model}")
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


def ask_peer(
    prepared: Sequence[HistoryColumns], case: Case, limit_s: float
) -> list[dict[str, Any]]:
    """Porcupine's answers; a process for each history, so that each has its own peak."""
    if case.name == "corpus":
        answers = peer.ask(prepared, limit_s, _MEMORY_MIB_MAX, case.repeats)
    else:
        answers: list[peer.PeerAnswer] = []
        undecided = 0
        for history in prepared:
            (answer,) = peer.ask([history], limit_s, _MEMORY_MIB_MAX, case.repeats)
            answers.append(answer)
            undecided = undecided + 1 if answer.verdict == "unknown" else 0
            if undecided == _PEER_UNDECIDED_MAX:
                break
    return [
        {"name": a.name, "verdict": a.verdict, "cpu_s": a.cpu_s, "peak_mib": a.peak_mib}
        for a in answers
    ]


def end_to_end(
    folder: Path, operations: Sequence[PairedOperation], model: str, jobs: Sequence[int]
) -> dict[str, Any]:
    """Measure ``splitbrain check`` from JSON lines to the verdict.

    Start-up is included, and told apart by what a history of one operation costs.
    """
    whole, least = folder / "history.jsonl", folder / "least.jsonl"
    write_events(operations, whole)
    write_events(operations[:1], least)
    found: dict[str, Any] = {"start_up": _command(least, model, 1)}
    for count in jobs:
        found[f"jobs_{count}"] = _command(whole, model, count)
    return found


def _command(path: Path, model: str, jobs: int) -> dict[str, Any]:
    program = shutil.which("splitbrain") or str(Path(sys.executable).with_name("splitbrain"))
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    began = time.perf_counter()
    done = subprocess.run(
        [program, "check", str(path), "--model", model, "--jobs", str(jobs)],
        stdout=subprocess.DEVNULL,
        check=False,
    )
    wall_s = time.perf_counter() - began
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {"wall_s": round(wall_s, 2), "cpu_s": round(cpu_s, 2), "exit_code": done.returncode}


def summarise(
    case: Case, answers: Sequence[dict[str, Any]], limit_s: float, expected: dict[str, str]
) -> dict[str, Any]:
    """One checker's cells of a row."""
    seconds = [answer["cpu_s"] for answer in answers]
    verdicts = {answer["name"]: answer["verdict"] for answer in answers}
    decided = [
        answer
        for answer in answers
        if answer["verdict"] != "unknown" and answer["cpu_s"] <= limit_s * 1.05
    ]
    wrong = [
        name
        for name, verdict in verdicts.items()
        if verdict not in ("unknown", expected.get(name, case.expected or verdict))
    ]
    return {
        "cpu_s_median": round(statistics.median(seconds), 4),
        "cpu_s_max": round(max(seconds), 4),
        "cpu_s_sum": round(sum(seconds), 4),
        "peak_mib": max(answer["peak_mib"] for answer in answers),
        "decided": len(decided),
        "decided_within_s": {
            str(share): sum(answer["cpu_s"] <= min(share, limit_s) * 1.05 for answer in decided)
            for share in SHARES_S
        },
        "histories": len(answers),
        "wrong": wrong,
        "algorithms": sorted({a for answer in answers for a in answer.get("algorithms", ())}),
        "limit_s": limit_s,
    }


def measure(case: Case, options: argparse.Namespace) -> dict[str, Any]:
    """One row: ours and Porcupine's cells."""
    limit_s = min(case.limit_s, options.limit_s or case.limit_s)
    expected = corpus_verdicts() if case.name == "corpus" else {}
    row: dict[str, Any] = {"name": case.name, "title": case.title, "aim": case.aim}
    row["is"] = case.expected or "both"
    with tempfile.TemporaryDirectory(prefix="splitbrain-checkers-") as name:
        folder = Path(name)
        prepared: list[HistoryColumns] = []
        for history, model, operations in histories(case, options.seeds or case.seeds):
            prepared.append(columns_of(history, operations, model))
            if case.end_to_end and "end_to_end" not in row and not options.kernel_only:
                jobs = (1, 2) if case.options.keys > 1 else (1,)
                row["end_to_end"] = end_to_end(folder, operations, case.own_model or model, jobs)
        if case.name == "sampled":
            expected = {history.name: history.name.rpartition(" ")[2] for history in prepared}
        if not prepared:
            return row | {"missing": "no recorded histories; set SPLITBRAIN_CORPUS"}
        row["ours"] = summarise(case, ask_ours(folder, prepared, case, limit_s), limit_s, expected)
        if options.peer:
            answers = ask_peer(prepared, case, limit_s)
            row["porcupine"] = summarise(case, answers, limit_s, expected)
    return row


def show(row: dict[str, Any]) -> None:
    """Print a row, a line for each checker."""
    for who in ("ours", "porcupine"):
        cells = row.get(who)
        if cells is None:
            continue
        whole = row.get("end_to_end") if who == "ours" else None
        print(
            _LINE.format(
                row["name"],
                row["is"],
                who,
                f"{cells['cpu_s_median']:.3f}",
                f"{cells['cpu_s_max']:.2f}",
                f"{cells['cpu_s_sum']:.2f}",
                cells["peak_mib"],
                "/".join(map(str, cells["decided_within_s"].values()))
                + f" of {cells['histories']}",
                _whole(whole) if whole else "",
            )
            + (f"  WRONG: {cells['wrong']}" if cells["wrong"] else ""),
            flush=True,
        )


def _whole(found: dict[str, Any]) -> str:
    """Wall seconds with one worker and with more, and of starting up."""
    seconds = [str(cells["wall_s"]) for name, cells in found.items() if name != "start_up"]
    return f"{' / '.join(seconds)} ({found['start_up']['wall_s']})"


def main() -> int:
    """Measure every chosen row."""
    parser = argparse.ArgumentParser(description=__doc__)
    names = [case.name for case in CASES]
    parser.add_argument("--rows", help="names, separated by commas: " + ", ".join(names))
    parser.add_argument("--all", action="store_true", help="also the rows that take minutes")
    parser.add_argument("--seeds", type=int, help="at most so many histories per row")
    parser.add_argument("--limit-s", type=float, help="at most so many CPU seconds per history")
    parser.add_argument("--no-peer", dest="peer", action="store_false")
    parser.add_argument("--kernel-only", action="store_true", help="nothing from end to end")
    options = parser.parse_args()
    chosen = options.rows.split(",") if options.rows else None
    unknown = set(chosen or ()) - set(names)
    if unknown:
        parser.error(f"there is no row {', '.join(sorted(unknown))}")
    if options.peer and not peer.is_built():
        print("Porcupine is left out: there is no Go to build it with.")
        options.peer = False
    print(_LINE.format(*_HEAD))
    rows: list[dict[str, Any]] = []
    for case in CASES:
        if case.name in chosen if chosen else options.all or not case.long:
            rows.append(measure(case, options))
            show(rows[-1])
    print(json.dumps({"bench": "checkers", "rows": rows}))
    cells = [row[who] for row in rows for who in ("ours", "porcupine") if who in row]
    return 1 if any(cell["wrong"] for cell in cells) else 0


if __name__ == "__main__":
    sys.exit(main())
