"""Matrix, failures, flakes and trends in plain Python, from their definitions."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean
from typing import Any

from splitbrain.checker.anomalies.account import headline_of
from splitbrain.checker.fingerprints import Fingerprint, fingerprint_of
from splitbrain.checker.verdict import CheckResult, Verdict
from tests.spark.reference import MS, Run, fault_windows, quantile

Row = dict[str, Any]
WORST_FIRST = ("invalid", "failed", "unknown", "vacuous", "none", "valid")


def outcome_matrix(runs: Iterable[Row], faults: Iterable[Row]) -> dict[tuple[Any, ...], Row]:
    kinds: dict[str, set[str]] = defaultdict(set)
    for fault in faults:
        if fault["invoked_ns"] is not None:
            kinds[fault["run_id"]].add(fault["kind"])
    cells: dict[tuple[Any, ...], list[Row]] = defaultdict(list)
    for run in runs:
        for kind in kinds[run["run_id"]] or {"none"}:
            version = run["system_version"] or "unknown"
            workload = run["workload"] or "unknown"
            cells[run["system"], version, workload, kind, run["expected"]].append(run)
    return {key: _cell(members) for key, members in cells.items()}


def _cell(members: list[Row]) -> Row:
    ordered = sorted(members, key=lambda run: (WORST_FIRST.index(run["outcome"]), run["run_id"]))
    counts = {word: sum(run["outcome"] == word for run in members) for word in WORST_FIRST}
    counts["unjudged"] = counts.pop("none")
    examples = [run["run_id"] for run in ordered if run["outcome"] != "valid"][:5]
    return {"runs": len(members), **counts, "examples": examples}


def fingerprints(runs: Iterable[Row], findings: Mapping[str, Sequence[CheckResult]]) -> set[Any]:
    met: list[tuple[str, Fingerprint, str]] = []
    for run in runs:
        results = [one for one in findings.get(run["run_id"], ()) if one.verdict is Verdict.INVALID]
        if not results and run["outcome"] == "invalid":
            results = [CheckResult("run", Verdict.INVALID, "")]
        for result in results:
            one = fingerprint_of(result)
            assert one is not None
            met.append((run["run_id"], one, headline_of(result)))
    names: dict[str, set[Fingerprint]] = defaultdict(set)
    for _, one, _ in met:
        if one.anomaly:
            names[Fingerprint(one.checker, one.kind, one.shape).text].add(one)
    found: set[Any] = set()
    for run_id, one, sentence in met:
        candidates = names[one.text]
        now = next(iter(candidates)) if len(candidates) == 1 else one
        kind = now.anomaly or now.kind
        found.add((run_id, now.checker, now.text, kind, now.shape, sentence))
    return found


def failures_since(runs: Sequence[Row], found: set[Any], since: Any) -> dict[tuple[str, bool], Row]:
    """By fingerprint, and whether a violation was expected of the runs that met it."""
    by_id = {run["run_id"]: run for run in runs}
    met: dict[tuple[str, bool], list[Row]] = defaultdict(list)
    sentences: dict[tuple[str, str], str] = {}
    for run_id, _, fingerprint, _, _, sentence in found:
        if (fingerprint, run_id) not in sentences:
            met[fingerprint, by_id[run_id]["expected"]].append(by_id[run_id])
        sentences[fingerprint, run_id] = max(sentence, sentences.get((fingerprint, run_id), ""))
    result: dict[tuple[str, bool], Row] = {}
    for (fingerprint, expected), members in met.items():
        now = [run for run in members if run["started_at"] and run["started_at"] >= since]
        then = len(members) - len(now)
        state = "resolved" if not now else "known" if then else "new"
        starts = [run["started_at"] for run in members if run["started_at"]]
        last = max(members, key=lambda run: (run["started_at"] or 0, run["run_id"]))
        result[fingerprint, expected] = {
            "state": state,
            "runs_since": len(now),
            "runs_before": then,
            "first_at": min(starts),
            "last_at": max(starts),
            "example": last["run_id"],
            "sentence": sentences[fingerprint, last["run_id"]],
            "reproduce": last["reproduce"],
        }
    return result


def flakes(runs: Sequence[Row], found: set[Any]) -> dict[tuple[str, str], tuple[int, int, str]]:
    plans: dict[str, list[Row]] = defaultdict(list)
    for run in sorted(runs, key=lambda run: (run["started_at"], run["run_id"])):
        if run["plan_digest"] and run["outcome"] in ("valid", "invalid"):
            plans[run["plan_digest"]].append(run)
    result: dict[tuple[str, str], tuple[int, int, str]] = {}
    for digest, members in plans.items():
        for fingerprint in {one[2] for one in found}:
            met = [(run["run_id"], fingerprint) in {(o[0], o[2]) for o in found} for run in members]
            k, n = sum(met), len(met)
            if k:
                word = "sometimes"
                if n == 1:
                    word = "not-replayed"
                elif k == n:
                    word = "deterministic"
                elif k == 1 and met[0]:
                    word = "never-again"
                result[digest, fingerprint] = (k, n, word)
    return result


def trend_points(runs: Mapping[str, Run]) -> dict[tuple[str, str], float]:
    points: dict[tuple[str, str], float] = {}
    for name, run in runs.items():
        verified = [window for window in fault_windows(run).values() if window["verified"]]
        shares = [one["availability_during"] for one in verified]
        shares = [share for share in shares if share is not None]
        failovers = [one["failover_ms"] for one in verified if one["failover_ms"] is not None]
        latencies = [
            one.end - one.start for one in run.load if one.type == "ok" and one.end is not None
        ]
        if shares:
            points[name, "availability"] = fmean(shares)
        if failovers:
            points[name, "failover_ms"] = quantile(failovers, 0.5)
        if latencies:
            points[name, "latency_p99_ms"] = quantile(latencies, 0.99) / MS
    return points
