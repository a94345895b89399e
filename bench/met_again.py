"""Whether a failure that was met before is known again, and another one is new: on real runs.

``python -m bench.met_again --runtime docker`` (or ``local``) lets the plans of two planted bugs run
until a failure of the first is met by a second seed, and the other bug has failed in a way that was
not seen. In between is a moment. Gate, JUnit, summary and the page over all runs must then call
each failure what it is: known or new against the runs before, flaky where the policy has it in
quarantine. The expected word is worked out here from fingerprints of ``results.json`` alone. Exit
code 1 where a word is wrong, or where so many seeds did not show the failures. The last line is one
JSON object.
"""

import argparse
import datetime as dt
import itertools
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final
from xml.etree import ElementTree as ET

import msgspec

from bench.campaign import run_once
from bench.planted_containers import SUITE, Carry, Wanted, carried, series_of
from splitbrain.checker.fingerprints import fingerprint_of
from splitbrain.checker.verdict import CheckResult, Verdict
from splitbrain.harness.campaign.suite.reading import read_suite

#: The first is met again; its failures look alike from seed to seed.
BUGS: Final = ("ack-before-commit", "stale-leader-reads")
SEEDS_MAX: Final = 5
_POLICY: Final = """schema = 1
require = ["violations == 0", "failures_new == 0"]

[[quarantine]]
fingerprint = "{fingerprint}"
until = {until}
reason = "the first failure of {bug}"
"""


class Met(msgspec.Struct, frozen=True):
    """A run that failed."""

    bug: str
    seed: int
    folder: Path
    fingerprints: frozenset[str]
    took_s: float


class LackingError(Exception):
    """The seeds did not show what is asked for."""


def failures_of(bug: str, runtime: str, place: Path, carry: Carry = run_once) -> Iterator[Met]:
    """Yield the failing runs of a bug's plan, seed after seed."""
    wanted = Wanted(runtime=runtime, bugs=(bug,), tries=SEEDS_MAX, controls=0)
    (series,) = series_of(read_suite(SUITE).suite, wanted)
    for run in series.runs:
        below = place / f"{bug}-{run.seed}"
        report = carried(run, below, carry)
        print(f"  {bug}, seed {run.seed}: {report.verdict}, {report.took_s:.0f} s", flush=True)
        for path in below.glob("*/*/results.json"):
            fingerprints = fingerprints_in(path)
            if report.exit_code == 1 and fingerprints and not path.parent.parent.is_symlink():
                yield Met(bug, run.seed, path.parent, fingerprints, report.took_s)


def fingerprints_in(results: Path) -> frozenset[str]:
    """Return the findings of a run's checkers, by name."""
    records = json.loads(results.read_bytes())["checkers"]
    checkers = [
        msgspec.convert(record, CheckResult) for record in records if record["verdict"] == "invalid"
    ]
    assert all(result.verdict is Verdict.INVALID for result in checkers)
    return frozenset(
        mark.text for result in checkers if (mark := fingerprint_of(result)) is not None
    )


def runs_of(runtime: str, place: Path) -> tuple[list[Met], list[Met], dt.datetime]:
    """Return the runs before the moment, those after it, and the moment.

    Raises:
        LackingError: no second seed failed alike, or the other bug not in a way of its own.
    """
    again, other = (failures_of(bug, runtime, place, run_once) for bug in BUGS)
    before = list(itertools.islice(again, 1))
    earlier = frozenset(itertools.chain.from_iterable(run.fingerprints for run in before))
    # Runs tell the second that they started in.
    time.sleep(1.1)
    moment = dt.datetime.now(dt.UTC).replace(microsecond=0)
    after: list[Met] = []
    for runs, is_again in ((again, True), (other, False)):
        for run in runs:
            after.append(run)
            if run.fingerprints & earlier if is_again else run.fingerprints - earlier:
                break
        else:
            raise LackingError(f"{SEEDS_MAX} seeds did not show the failures that are asked for")
    return before, after, moment


def run_splitbrain(*arguments: str, codes: tuple[int, ...] = (0,)) -> None:
    """Carry out a command of splitbrain; fail where it ends otherwise."""
    print(f"  splitbrain {' '.join(arguments)}", flush=True)
    finished = subprocess.run(
        [sys.executable, "-m", "splitbrain.harness.cli", *arguments],
        check=False,
        capture_output=True,
        text=True,
    )
    if finished.returncode not in codes:
        raise AssertionError(f"exit code {finished.returncode}: {finished.stderr.strip()}")


def wrong_words(before: list[Met], after: list[Met], moment: dt.datetime, place: Path) -> list[str]:
    """Each place where a failure is called what it is not."""
    known = set[str]().union(*(run.fingerprints for run in before))
    seen = set[str]().union(*(run.fingerprints for run in after))
    spared = min(known & seen)
    policy, lake = place / "gate.toml", place / "lake"
    until = (moment + dt.timedelta(days=1)).date()
    policy.write_text(_POLICY.format(fingerprint=spared, until=until, bug=BUGS[0]))
    earlier = [str(run.folder) for run in before]
    later = [str(run.folder) for run in after]
    run_splitbrain("ingest", *earlier, *later, "--lake", str(lake))
    since = ("--since", moment.isoformat(), "--report", str(place / "all-runs"))
    run_splitbrain("analyze", "--lake", str(lake), *since)
    gate = ("gate", "--policy", str(policy), "--output")
    run_splitbrain(*gate, str(place / "before"), "--baseline", "none", *earlier, codes=(0, 1, 2))
    baseline = str(place / "before" / "gate.json")
    run_splitbrain(*gate, str(place / "after"), "--baseline", baseline, *later, codes=(1,))
    states = {name: "known" if name in known else "new" for name in seen}
    states |= dict.fromkeys(known - seen, "resolved")
    return [
        *_wrong_over_all(place / "all-runs", states),
        *_wrong_at_the_gate(place / "after", states, spared),
    ]


def _wrong_over_all(folder: Path, states: dict[str, str]) -> Iterator[str]:
    rows = json.loads((folder / "across.json").read_bytes())["failures"]["rows"]
    stated = {row["fingerprint"]: row["state"] for row in rows}
    if stated != states:
        yield f"across.json says {stated}, which are {states}"
    for name in ("summary.md", "index.html"):
        text = (folder / name).read_text()
        yield from (
            f"{name} does not name {fingerprint}"
            for fingerprint in states
            if fingerprint not in text
        )


def _wrong_at_the_gate(folder: Path, states: dict[str, str], spared: str) -> Iterator[str]:
    record = json.loads((folder / "gate.json").read_bytes())
    stated = {row["fingerprint"]: "new" if row["new"] else "known" for row in record["failures"]}
    stated |= dict.fromkeys(record["resolved"], "resolved")
    if stated != states:
        yield f"gate.json says {stated}, which are {states}"
    summary = (folder / "gate.md").read_text()
    places = {fingerprint: summary.find(fingerprint) for fingerprint in states}
    yield from (
        f"gate.md does not name {fingerprint}" for fingerprint, at in places.items() if at < 0
    )
    of_state = {
        state: [places[fingerprint] for fingerprint, its in states.items() if its == state]
        for state in ("new", "known")
    }
    if max(of_state["new"]) > min(of_state["known"]):
        yield "gate.md tells of a known failure before a new one"
    troubles = {
        (
            trouble.get("type"),
            trouble.tag,
            (trouble.text or "").partition(f"{trouble.get('type')}, ")[2].split()[0],
        )
        for case in ET.parse(folder / "gate.xml").getroot().iter("testcase")  # noqa: S314 - ours
        for trouble in case
        if trouble.get("type") in states
    }
    expected = {
        (fingerprint, "flakyFailure" if fingerprint == spared else "failure", state)
        for fingerprint, state in states.items()
        if state != "resolved"
    }
    if troubles != expected:
        yield f"gate.xml says {troubles}, which are {expected}"


def main() -> int:
    """Run, hold what is said against what is so, and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runtime", default="docker")
    parser.add_argument("--runs-folder", type=Path)
    options = parser.parse_args()
    place = (options.runs_folder or Path(tempfile.mkdtemp(prefix="met-again-"))).absolute()
    began_s = time.monotonic()
    answer: dict[str, Any] = {"bench": "met-again", "runtime": options.runtime}
    try:
        before, after, moment = runs_of(options.runtime, place)
    except LackingError as error:
        print(error)
        print(json.dumps({**answer, "shown": False}))
        return 1
    ran_s = time.monotonic() - began_s
    wrong = wrong_words(before, after, moment, place)
    for when, runs in (("before", before), ("after", after)):
        for run in runs:
            names = ", ".join(sorted(run.fingerprints))
            print(f"{when}: {run.bug}, seed {run.seed}: {names}")
    print("\n".join(wrong) or "every failure is called what it is")
    answer |= {
        "shown": True,
        "runs": len(before) + len(after),
        "runs_s": round(ran_s, 1),
        "commands_s": round(time.monotonic() - began_s - ran_s, 1),
        "wrong": wrong,
        "folder": str(place),
    }
    print(json.dumps(answer))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
