"""Runs for gates: in memory, and as run folders with a plan and results."""

from pathlib import Path
from typing import Any

from splitbrain.checker.verdict import CheckResult, Verdict, merge
from splitbrain.contracts.names import NodeName, RunId
from splitbrain.harness.campaign.gate.gated_run import GatedRun
from splitbrain.harness.campaign.gate.policy import Policy, read_policy
from splitbrain.harness.folder.results import RESULTS_SCHEMA, FaultResult, Results, exit_code, write
from splitbrain.history.plan import encode_plan, sub_seeds
from splitbrain.history.run_folder import RunFolder
from tests.plans import plan_with

VALID = CheckResult("linearizability:cas-register", Verdict.VALID, "All is well.")
LOST_NONE = CheckResult("lost-commits", Verdict.VALID, "All held.", {"lost": 0})
UNDECIDED = CheckResult("set-full", Verdict.UNKNOWN, "Not finished: time is up.")


def stale_read(seed: int = 1, kind: str = "not-linearizable") -> CheckResult:
    """A violation whose numbers depend on the seed and whose shape does not."""
    core = [
        {"index": seed, "f": "write", "type": "ok", "process": 1, "start": seed, "end": seed + 1},
        {"index": seed + 9, "f": "read", "type": "ok", "process": 2, "start": seed + 9, "end": 99},
    ]
    found = {"kind": kind, "core": core, "sentence": f"read of {seed} has no place"}
    reason = f"read of {seed} has no place"
    return CheckResult(VALID.checker, Verdict.INVALID, reason, violations=(found,))


def policy(folder: Path, *thresholds: str, more: str = "") -> Policy:
    path = folder / "gate.toml"
    path.write_text(f"schema = 1\nrequire = {list(thresholds)!r}\n{more}")
    return read_policy(path)


def fault(kind: str = "kill", **fields: Any) -> FaultResult:
    defaults: dict[str, Any] = {"applied": True, "verified": True, "healed": True}
    return FaultResult(index=0, kind=kind, target="leader", **(defaults | fields))


def run(name: str = "a", **fields: Any) -> GatedRun:
    """A valid run, unless told otherwise."""
    defaults: dict[str, Any] = {
        "folder": Path("/runs") / name,
        "has_history": True,
        "system": "kraft",
        "version": "1",
        "workload": "register",
        "runtime": "docker",
        "seed": 7,
        "outcome": "valid",
        "sentence": "It is well.",
        "reproduce": f"splitbrain test --seed 7 # {name}",
        "checkers": (VALID, LOST_NONE),
        "faults": (fault(),),
        "elections": 2,
        "longest_unavailability_ms": 300,
    }
    return GatedRun(name=name, **(defaults | fields))


def invalid(name: str = "bad", seed: int = 1, **fields: Any) -> GatedRun:
    result = stale_read(seed)
    return run(name, outcome="invalid", checkers=(result, LOST_NONE), seed=seed, **fields)


def write_run(
    root: Path,
    *checkers: CheckResult,
    seed: int = 7,
    judged: bool = True,
    **fields: Any,
) -> Path:
    """A run folder as far as a gate looks at it."""
    folder = RunFolder(root)
    root.mkdir(parents=True)
    plan = plan_with(
        run_id=RunId(root.name),
        test="kraft-register",
        system="kraft",
        system_versions={"kraft": "1.0"},
        nodes=(NodeName("n1"),),
        checkers=(),
        seed=seed,
        sub_seeds=sub_seeds(seed),
        replay_of=fields.pop("replay_of", None),
    )
    folder.plan.write_bytes(encode_plan(plan))
    if not judged:
        return root
    given = checkers or (VALID, LOST_NONE)
    verdict = merge(one.verdict for one in given)
    defaults: dict[str, Any] = {
        "schema": RESULTS_SCHEMA,
        "run": root.name,
        "test": plan.test,
        "system": "kraft",
        "workload": "register",
        "seed": seed,
        "runtime": "docker",
        "verdict": verdict,
        "vacuous": (),
        "exit_code": exit_code(verdict, vacuous=False, harness_failed=False),
        "checkers": given,
        "operations": {},
        "faults": (fault(),),
        "elections": 2,
        "epochs": (1, 2),
        "longest_unavailability_ms": 300,
        "run_folder": str(root),
        "reproduce": f"splitbrain test --seed {seed}",
    }
    write(Results(**(defaults | fields)), folder.results)
    return root
