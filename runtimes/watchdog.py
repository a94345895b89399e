"""A process of its own that heals and stops a run's nodes when its harness dies; for all runtimes.

It is started beside every run and waits for one of two things: the word ``done`` on its standard
input, which says that the run ended in order, or the death of its owner. On death it has the
runtime's own part remove every rule, thaw and kill the run's nodes, and leaves everything else as
evidence for ``splitbrain check`` and ``splitbrain clean``.

It must never act while its owner lives, and never on another run.

Usage: ``python -m splitbrain.runtimes.watchdog RUNTIME RUN_ID RUN_FOLDER OWNER_PROCESS``. Exit
codes: 0 the run ended in order, 1 its nodes were stopped, 3 they could not be, 64 bad usage.
"""

import os
import selectors
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from tenacity import Retrying, retry_if_exception_type, stop_after_delay, wait_fixed

from splitbrain.contracts.errors import HarnessError, UsageError
from splitbrain.contracts.names import RunId
from splitbrain.history.run_folder import RunFolder
from splitbrain.runtimes.dead_runs import is_swept
from splitbrain.runtimes.registry import stopper

#: Word that the owner writes when the run ended in order.
DONE = b"done\n"
#: Name of the file in the run folder that says what it did.
LOG_NAME = "watchdog.log"

_MODULE = f"{__package__}.watchdog"
_READ_BYTES = 64
#: An engine that went away with the harness may come back, and its nodes with it.
_STOP_PATIENCE_S = 600.0
_STOP_INTERVAL_S = 1.0

#: Stops the nodes of one run, given the run's id and folder; raises HarnessError where it cannot.
Stopper = Callable[[RunId, Path], None]


def owner_died(owner: int, pipe: int) -> bool:
    """Wait for the owner's word on a descriptor, or its death; whether it died without the word."""
    try:
        process = os.pidfd_open(owner)
    except ProcessLookupError:
        return True
    selector = selectors.DefaultSelector()
    with selector:
        selector.register(pipe, selectors.EVENT_READ)
        # Pipes may be inherited by other children of the owner, who then keep them open: so its
        # death is also watched directly.
        selector.register(process, selectors.EVENT_READ)
        try:
            ready = {key.fd for key, _ in selector.select()}
            if pipe in ready or process in ready:
                os.set_blocking(pipe, False)
                with suppress(BlockingIOError):
                    return os.read(pipe, _READ_BYTES) != DONE
            return True
        finally:
            os.close(process)


class Watchdog:
    """The owner's end: starts the process, and dismisses it when the run ends in order."""

    def __init__(self, runtime: str, run_id: RunId, run_folder: Path) -> None:
        folder = run_folder.resolve()
        command = [sys.executable, "-P", "-m", _MODULE]
        with (folder / LOG_NAME).open("ab") as output:
            self._process = subprocess.Popen(
                [*command, runtime, run_id, str(folder), str(os.getpid())],
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=output,
                # It outlives this process and must not keep a file system busy.
                cwd="/",
                env={**os.environ, "PYTHONPATH": _module_path()},
                # Neither a keyboard interrupt nor a kill of the harness' group must reach it.
                start_new_session=True,
            )

    @property
    def process_id(self) -> int:
        """Of the watching process."""
        return self._process.pid

    def dismiss(self, patience_s: float = 5.0) -> None:
        """Say that the run ended in order. Safe to call twice."""
        pipe = self._process.stdin
        if pipe is not None and not pipe.closed:
            with suppress(BrokenPipeError):
                pipe.write(DONE)
                pipe.close()
        try:
            self._process.wait(patience_s)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


def _module_path() -> str:
    return os.pathsep.join(str(Path(path).resolve()) for path in sys.path if path)


def main(arguments: list[str], stopper_of: Callable[[str], Stopper] = stopper) -> int:
    """Watch, and act if the owner dies."""
    match arguments:
        case [runtime, run_id, run_folder, owner] if owner.isdecimal():
            pass
        case _:
            print(__doc__, file=sys.stderr)
            return UsageError.exit_code
    try:
        # Found before the wait: what it imports takes longer than what it does.
        stop = stopper_of(runtime)
    except UsageError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    if not owner_died(int(owner), sys.stdin.fileno()):
        return 0
    print(f"the harness of {run_id} is gone; healing and stopping its nodes", flush=True)
    run = RunId(run_id), Path(run_folder)

    def attempt() -> None:
        try:
            stop(*run)
        except HarnessError:
            # Where it cannot reach the nodes any more, somebody else may have removed them.
            if not is_swept(RunFolder(run[1]).lock):
                raise

    patiently = Retrying(
        retry=retry_if_exception_type(HarnessError),
        stop=stop_after_delay(_STOP_PATIENCE_S),
        wait=wait_fixed(_STOP_INTERVAL_S),
        reraise=True,
    )
    try:
        patiently(attempt)
    except HarnessError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    print("its nodes are stopped", flush=True)
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
