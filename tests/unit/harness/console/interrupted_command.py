"""A whole command against the quorum in memory, as a process that can be sent signals.

``python -m tests.unit.harness.console.interrupted_command RUNS_FOLDER STAGE``: when the stage is
reached it prints ``reached STAGE`` and stays there until it is interrupted.
"""

import signal
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from splitbrain.harness.cli import main as cli
from splitbrain.harness.run import convergence
from splitbrain.history.process_budget import ProcessBudget
from tests.unit.harness.fake_spark import fake_spark
from tests.unit.harness.run_fake import FakeRun

#: Nothing is waited for longer than this, whatever the test does wrong.
_PATIENCE_S = 60.0


def hang(_payload: Any, _budget: ProcessBudget) -> None:
    """A checker that never ends."""
    sys.stderr.write("reached judging\n")
    threading.Event().wait(_PATIENCE_S)


def say(line: str) -> None:
    """Tell the test that waits."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


class Stages:
    """Makes the command stop at one stage of its course."""

    def __init__(self, run: FakeRun, folder: Path) -> None:
        self.run = run
        self.folder = folder
        self.options = ["--time-limit", "0.3", "--no-analyze"]

    def setup(self) -> None:
        """No leader is ever found."""
        self._never(self.run.system, "ready")

    def load(self) -> None:
        """The load lasts."""
        self.options = ["--time-limit", "60"]
        restore = self.run.runtime.teardown
        self.run.runtime.teardown = self._after(restore, "torn down")  # type: ignore[method-assign]
        self._say_when_loaded()

    def convergence(self) -> None:
        """The nodes never agree."""
        self._never(self.run.system, "converged")
        convergence.INTERRUPTED_PATIENCE_S = 60.0

    def judging(self) -> None:
        """A checker hangs."""
        from splitbrain.harness.judge import checking

        checking._WHOLE_FUNCTION = "tests.unit.harness.console.interrupted_command:hang"
        checking.PART_FUNCTION = "tests.unit.harness.console.interrupted_command:hang"

    def spark(self) -> None:
        """The analysis hangs, after a load that shows enough even on a busy machine."""
        self.options = ["--time-limit", "3"]
        sys.path.insert(0, fake_spark(self.folder, "import signal\nsignal.pause()\n"))
        from splitbrain.harness.cli.session import Session

        told = Session.note_verdict

        def tell(session: Session, results: Any) -> None:
            told(session, results)
            say("reached spark")

        Session.note_verdict = tell  # type: ignore[method-assign]

    def teardown(self) -> None:
        """The engine does not answer while the nodes are removed."""
        self.options = ["--time-limit", "60"]
        self._say_when_loaded()
        self.run.runtime.teardown = lambda: threading.Event().wait(_PATIENCE_S)  # type: ignore[method-assign,assignment,return-value]

    def _say_when_loaded(self) -> None:
        open_client = self.run.system.open_client

        def opened(*arguments: Any) -> Any:
            if self.options[-1] != "told":
                say("reached load")
                self.options.append("told")
            return open_client(*arguments)

        self.run.system.open_client = opened  # type: ignore[method-assign]

    def _never(self, target: Any, name: str) -> None:
        stage = sys.argv[2]
        said: list[str] = []

        def raise_always(_runtime: Any) -> None:
            if not said:
                said.append(stage)
                say(f"reached {stage}")
            raise RuntimeError("not yet")

        setattr(target, name, raise_always)

    @staticmethod
    def _after(action: Callable[[], None], line: str) -> Callable[[], None]:
        def act() -> None:
            action()
            say(line)

        return act


def main(folder: Path, stage: str) -> int:
    """Run the command; its exit code."""
    from splitbrain.runtimes import registry as runtimes
    from splitbrain.systems import registry as systems

    run = FakeRun(folder)
    stages = Stages(run, folder)
    getattr(stages, stage)()
    entry = runtimes._Entry(lambda: run.runtime, lambda *_: None, lambda _: [])
    runtimes._RUNTIMES = {"fake": lambda: entry}
    systems._FACTORIES = {"fake": lambda: run.system}  # type: ignore[assignment]
    return cli.run(
        [
            *("test", "--system", "fake", "--runtime", "fake", "--runs-folder", str(folder)),
            *("--seed", "3", "--operation-timeout", "0.25", "--rate", "400", "--nemesis", "none"),
            *stages.options,
        ]
    )


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)
    sys.exit(main(Path(sys.argv[1]), sys.argv[2]))
