"""Stands in for the command line: makes a run folder and ends as the cell's settings ask.

``fake_tool.py test ... --setting does=WHAT --setting after=SECONDS --runs-folder DIR`` leaves a
folder as a real run of that fate would; ``fake_tool.py check DIR`` judges one. Knows nothing of
threads, engines or Spark, so that a run takes as long as Python needs to start.
"""

import hashlib
import json
import os
import signal
import sys
import threading
import time
from pathlib import Path

GATE_PATIENCE_S = 60.0


def option(name: str, default: str = "") -> str:
    return sys.argv[sys.argv.index(name) + 1] if name in sys.argv else default


def setting(name: str, default: str) -> str:
    pairs = [word.partition("=") for word in sys.argv if "=" in word]
    return next((value for key, _, value in pairs if key == name), default)


def seal(folder: Path) -> None:
    """As the end of a real run does: the length and digest of each file of evidence."""
    seals: dict[str, object] = {}
    for name in ("plan.json", "history.jsonl", "phases.jsonl"):
        content = (folder / name).read_bytes()
        digest = hashlib.blake2b(content, digest_size=16).hexdigest()
        seals[name] = {"length_bytes": len(content), "digest": digest}
    (folder / "manifest.json").write_text(json.dumps(seals))


def results(folder: Path, verdict: str, code: int, **more: object) -> None:
    checkers = [{"checker": "linearizability:cas-register", "verdict": verdict, "reason": "Why."}]
    content = {
        "schema": 1,
        "run": folder.name,
        "test": "fake",
        "system": "fake",
        "workload": "w",
        "seed": 1,
        "runtime": "fake",
        "verdict": verdict,
        "vacuous": [],
        "exit_code": code,
        "checkers": checkers,
        "operations": {},
        "faults": [],
        "elections": None,
        "epochs": [],
        "longest_unavailability_ms": None,
        "run_folder": str(folder),
        "reproduce": "again",
        **more,
    }
    part = folder / ".results.json.part"
    part.write_text(json.dumps(content))
    part.replace(folder / "results.json")
    for name in setting("pages", "").split():
        (folder / name).write_text(verdict)


def phases(folder: Path, *names: str) -> None:
    with (folder / "phases.jsonl").open("a") as file:
        for name in names:
            file.write(json.dumps({"time": 1, "phase": name}) + "\n")


def check(folder: Path) -> int:
    found = "invalid" if "lost" in (folder / "history.jsonl").read_text() else "valid"
    code = 1 if found == "invalid" else 0
    results(folder, found, code)
    return code


def test() -> int:
    seed, does = option("--seed"), setting("does", "valid")
    does = setting(f"does{seed}", does)
    if does == "set-up-fails":
        sys.stderr.write("splitbrain: could not start the nodes (n1): port taken. Free it.\n")
        return 3
    if does == "has-a-defect":
        sys.stderr.write("KeyError: 'n4'\nsplitbrain: this is a defect of splitbrain; tell us.\n")
        return 3
    if does == "breaks":
        raise ImportError("nothing of this kind")
    folder = Path(option("--runs-folder")) / "fake-w" / f"20260101T000000Z-{seed}"
    folder.mkdir(parents=True)
    plan = {
        "run_id": folder.name,
        "test": "fake",
        "system": "fake",
        "runtime": "fake",
        "nodes": ["n1"],
        "workload": "w",
        "checkers": [],
        "nemesis": "none",
        "seed": int(seed),
        "sub_seeds": {},
        "time_limit_s": 1.0,
        "concurrency": 1,
        "rate": 1.0,
        "operation_timeout_s": 1.0,
        "started_at": "",
        "tool_version": "0",
        "system_versions": {"fake": "1.2"},
    }
    (folder / "plan.json").write_text(json.dumps(plan))
    (folder / "nodes").mkdir()
    (folder / "history.jsonl").write_text("lost\n" if does.startswith("loses") else "kept\n")
    with Path(setting("log", os.devnull)).open("a") as log:
        log.write(f"{seed}\n")
    stopped = threading.Event()
    if does != "unprepared":
        signal.signal(signal.SIGINT, lambda *_: stopped.set())
    phases(folder, "deploying")
    if does.endswith("-then-dies"):
        os.kill(os.getpid(), signal.SIGKILL)
    gate = setting("gate", "")
    # A test that fails never opens the gate; the run must end all the same.
    deadline = time.monotonic() + GATE_PATIENCE_S
    while gate and not Path(gate).exists() and time.monotonic() < deadline:
        if stopped.wait(0.02):
            break
    if stopped.wait(float(setting("after", "0"))):
        phases(folder, "interrupted")
    cut = does in ("is-cut-short", "is-interrupted")
    phases(folder, *(["interrupted"] if cut else []), "torn-down")
    seal(folder)
    if does == "unjudged":
        return 1
    verdict, code = {"invalid": ("invalid", 1), "loses": ("invalid", 1)}.get(does, ("valid", 0))
    more: dict[str, object] = {}
    covers = setting("covers", "")
    if covers:
        met = {"kind": covers, "role": "leader", "phase": "settled", "workload": "w"}
        more["coverage"] = [{**met, "faults": 2, "bitten": 1}]
    if does == "unknown":
        verdict, code = "unknown", 2
    if does == "vacuous":
        code, more["vacuous"] = 2, ["No fault bit."]
    if does in ("is-interrupted", "is-judged-in-haste"):
        code, more["interrupted"] = 2, True
    if does == "fails-late":
        code = 3
        more |= {"harness_failed": True, "problems": ["n1 was not healed."]}
    results(folder, verdict, code, **more)
    return 9 if does == "lies" else code


if __name__ == "__main__":
    sys.exit(check(Path(sys.argv[2])) if sys.argv[1] == "check" else test())
