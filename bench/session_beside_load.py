"""Does Spark's session, started beside a run's clients, disturb them, and what does it save?

``python -m bench.session_beside_load --pairs 3 --time-limit 60`` makes each seed's run twice, by
turns: as ``splitbrain test`` does, with a session that starts beside the load and gives way to it,
and with ``--no-analyze``, so that no session is there, followed by ``splitbrain analyze``. It
prints what the clients had (operations that were acknowledged, the median second's median and 95th
percentile of the latency of writes, and that percentile in the worst tenth of the seconds), and the
seconds from the verdict to the figures; the last line has the medians and ratios as JSON.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import msgspec

from splitbrain.contracts.analysis.run import RunAnalysis
from splitbrain.contracts.distribution import PACKAGE
from splitbrain.harness.folder import results
from splitbrain.history.run_folder import RunFolder

_TOOL = [sys.executable, "-P", "-m", f"{PACKAGE}.harness.cli"]
_VERDICTS = ("VALID", "INVALID", "UNKNOWN", "VACUOUS")


class Made(msgspec.Struct, frozen=True):
    """One run, and its figures."""

    acknowledged: int
    p50_ms: float
    p95_ms: float
    #: 95th percentile of the second that is worse than nine tenths of the others.
    p95_late_ms: float
    #: From the line with the verdict, or from the start of ``analyze``.
    figures_s: float
    #: From the start of the command to the end of the figures.
    whole_s: float


def run(words: list[str], folder: Path, *, beside: bool) -> Made:
    """Make one run and its figures."""
    began_s = time.monotonic()
    more = [] if beside else ["--no-analyze"]
    verdict_s = 0.0
    command = [*_TOOL, "test", *words, "--runs-folder", str(folder), *more]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if line.split()[:1] and line.split()[0] in _VERDICTS and line.startswith(" "):
                verdict_s = time.monotonic()
    made = RunFolder((folder / "latest").resolve())
    if not beside:
        verdict_s = time.monotonic()
        subprocess.run([*_TOOL, "analyze", str(made.root)], check=True, stdout=subprocess.DEVNULL)
    ended_s = time.monotonic()
    analysis = msgspec.json.decode(made.analysis_summary.read_bytes(), type=RunAnalysis)
    writes = [row for row in analysis.latency if row.f == "write"]
    late = sorted(row.p95_ms for row in writes if row.p95_ms is not None)
    return Made(
        acknowledged=sum(counts.ok for counts in results.read(made.results).operations.values()),
        p50_ms=statistics.median(row.p50_ms for row in writes if row.p50_ms is not None),
        p95_ms=statistics.median(late),
        p95_late_ms=late[len(late) * 9 // 10],
        figures_s=ended_s - verdict_s,
        whole_s=ended_s - began_s,
    )


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m bench.session_beside_load")
    parser.add_argument("--pairs", type=int, default=3)
    parser.add_argument("--time-limit", type=float, default=60.0)
    parser.add_argument("--runtime", default="docker")
    parser.add_argument("--nemesis", default="partition,pause,kill")
    options = parser.parse_args()
    found: dict[str, list[Made]] = {"beside": [], "without": []}
    with tempfile.TemporaryDirectory(prefix="splitbrain-beside-") as folder:
        for seed in range(1, options.pairs + 1):
            words = ["--seed", str(seed), "--time-limit", str(options.time_limit)]
            words += ["--runtime", options.runtime, "--nemesis", options.nemesis]
            for name, made in found.items():
                made.append(run(words, Path(folder) / name, beside=name == "beside"))
                print(f"seed {seed}, {name:>7}: {msgspec.structs.asdict(made[-1])}", flush=True)
    medians = {
        f"{name}_{field}": round(statistics.median(getattr(one, field) for one in made), 2)
        for name, made in found.items()
        for field in Made.__struct_fields__
    }
    ratios = {
        f"{field}_ratio": round(medians[f"beside_{field}"] / medians[f"without_{field}"], 2)
        for field in Made.__struct_fields__
    }
    print(json.dumps({"bench": "session_beside_load", **medians, **ratios}))


if __name__ == "__main__":
    main()
