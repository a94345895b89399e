"""Runs prepared tests against the quorum in memory, fast enough for the unit tier."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from rich.console import Console

from splitbrain.contracts.fault import Fault
from splitbrain.harness.judge.evidence_loader import read_json_lines
from splitbrain.harness.run.options import prepare
from splitbrain.harness.run.runner import RunOutcome, run_test
from splitbrain.harness.run.stage import Timing
from splitbrain.nemesis.aim import Patience
from tests.plans import options_with
from tests.unit.harness.fake_quorum import FakeQuorum, FakeSystem
from tests.unit.harness.fake_runtime import FakeRuntime

TIMING = Timing(
    ready_s=2.0,
    converged_s=0.5,
    interrupted_s=1.0,
    nemesis=Patience(
        target_us=400_000,
        bitten_us=400_000,
        healed_us=400_000,
        resumed_us=800_000,
        leader_query_us=100_000,
    ),
)


def fault(
    kind: str, target: str = "leader", *, at_ms: int = 300, duration_ms: int = 500, index: int = 0
) -> Fault:
    return Fault(index, kind, target, at_ms * 1000, duration_ms * 1000, draw=0)


class FakeRun:
    """One run against a fresh quorum; the parts are there to be tampered with before ``run``."""

    def __init__(self, runs_folder: Path, **options: Any) -> None:
        self.quorum = FakeQuorum()
        self.runtime = FakeRuntime(self.quorum)
        self.system = FakeSystem(self.quorum)
        defaults: dict[str, Any] = {
            "system": "fake",
            "runtime": "fake",
            "time_limit_s": 1.2,
            "rate": 400.0,
            "operation_timeout_s": 0.25,
            "nemesis": "none",
            "runs_folder": runs_folder,
        }
        self.options = options_with(**(defaults | options))
        self.timing = TIMING
        self.console = Console(quiet=True)
        #: Clients that were opened by the time the run began, and by the run.
        self.clients_before = self.clients_opened = 0

    def run(self) -> RunOutcome:
        test = prepare(self.options, self.system, lambda: self.runtime)
        self.outcome = run_test(test, self.console, self.timing)
        return self.outcome

    def lines(self, path: Path, type_: type) -> list[Any]:
        problems: list[str] = []
        read = read_json_lines(path, type_, problems)
        assert problems == []
        return read


def before(thing: Any, call: str, act: Callable[..., object]) -> None:
    """Have this done before each call, with its arguments; what it raises is the call's."""
    original = getattr(thing, call)

    def called(*arguments: Any, **options: Any) -> Any:
        act(*arguments, **options)
        return original(*arguments, **options)

    setattr(thing, call, called)
