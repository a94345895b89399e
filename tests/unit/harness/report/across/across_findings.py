"""Findings over all runs, made up."""

import datetime as dt
import random
from typing import Any

from splitbrain.contracts.analysis.across import (
    Cell,
    Change,
    Failure,
    Findings,
    Flake,
    Met,
    Point,
    Shown,
    ShownPoints,
)

NIGHT = dt.datetime(2026, 11, 1, 22, tzinfo=dt.UTC)
HOSTILE = "<script>alert(1)</script>|`x`"


def failure(state: str = "new", **fields: Any) -> Failure:
    given: dict[str, Any] = {
        "fingerprint": "f1-b29cf92a149b",
        "checker": "linearizability:cas-register",
        "kind": "not-linearizable",
        "shape": "read:ok, write:ok; a^b b<a",
        "expected": False,
        "runs_since": int(state != "resolved"),
        "runs_before": int(state != "new"),
        "first_at": NIGHT,
        "last_at": NIGHT,
        "example": "20261101T220000Z-5.0123456789",
        "sentence": "Stale read. n1 acknowledged write 4 to r0-5 at 12.240 s.",
        "reproduce": "splitbrain test --seed 5 --made-by 0.1.0+4795ac6",
    }
    return Failure(state=state, **given | fields)


def trend(workload: str, step: float, *, measure: str = "failover_ms") -> tuple[list[Any], Any]:
    """Points of sixty nights, and the change in the middle of them where there is a step."""
    draws = random.Random(workload)
    name = {"system": "kraft", "workload": workload, "runtime": "docker", "measure": measure}
    points = [
        Point(
            **name,
            started_at=NIGHT + dt.timedelta(days=day),
            run_id=f"{workload}-{measure}-{day}",
            version="1",
            value=draws.gauss(300 + (step if day >= 30 else 0), 9),
        )
        for day in range(60)
    ]
    if not step:
        return points, None
    at = points[30]
    worse = step > 0
    figures = {"before": 300.0, "after": 300.0 + step, "p_value": 0.001, "worse": worse}
    return points, Change(**name, started_at=at.started_at, run_id=at.run_id, **figures)


def findings(*failures: Failure, step: float = 40.0) -> Findings:
    made = [trend("register", step), trend("set", 0.0), trend("queue", -60.0 if step else 0.0)]
    points = [point for found, _ in made for point in found]
    changes = [change for _, change in made if change is not None]
    cell: dict[str, Any] = {
        "system": "kraft",
        "version": "1",
        "workload": "register",
        "expected": False,
        "runs": 9,
        "valid": 7,
        "invalid": 1,
        "unknown": 0,
        "vacuous": 1,
        "failed": 0,
        "unjudged": 0,
        "examples": ["run-3", HOSTILE],
    }
    cells = [Cell(**cell, fault=fault) for fault in ("kill", "pause", HOSTILE)]
    flake = Flake(
        plan_digest="p",
        fingerprint="f1-b29cf92a149b",
        checker="set-full",
        kind="lost",
        system="kraft",
        workload="set",
        runtime="simulated",
        failed=3,
        runs=3,
        flake="deterministic",
        example="run-1",
    )
    met = {"system": "kraft", "workload": "register", "role": "leader", "runs": 3, "faults": 7}
    coverage = [
        Met(**met, kind=kind, phase="settled", bitten=7 - number)
        for number, kind in enumerate(("kill", HOSTILE))
    ]
    return Findings(
        lake="runs/lake",
        since=NIGHT,
        runs=180,
        matrix=Shown(cells, 3),
        failures=Shown(list(failures), len(failures)),
        flakes=Shown([flake], 1),
        coverage=Shown(coverage, 9),
        points=ShownPoints(points, len(points), 3),
        changes=Shown(changes, len(changes)),
    )
