"""Ends what a dead run left on this machine: processes, and nothing but processes.

Every process of a run carries the path of the run's lock in its environment. A cluster dies with
its host process, and that with the harness, so there is hardly ever anything to end. It must never
touch a living run, nor a process that does not say to which run it belongs.
"""

import os
import signal
from collections import defaultdict
from contextlib import suppress
from pathlib import Path
from typing import Final

from tenacity import Retrying, retry_if_not_result, stop_after_delay, wait_fixed

from contracts.names import RunId
from runtimes.dead_runs import Swept, claimed, is_living
from runtimes.local.control_groups import possible_bases, sweep_groups
from runtimes.local.process_table import ENDED, all_processes, environment, process

#: Marks in the environment of a run's processes.
RUN_VARIABLE: Final = "SPLITBRAIN_RUN"
LOCK_VARIABLE: Final = "SPLITBRAIN_RUN_LOCK"
OWNER_VARIABLE: Final = "SPLITBRAIN_RUN_OWNER"

_PATIENCE_S: Final = 10.0
_INTERVAL_S: Final = 0.02


def sweep_machine(only: Path | None = None) -> list[Swept]:
    """End the processes of every dead run of this user (of all users for root).

    All that a node writes is in the run folder already: there is nothing to save.

    Args:
        only: lock of the only run to be swept; None: all that are dead.
    """
    sweep_groups(possible_bases())
    swept: list[Swept] = []
    for run_id, word, owner in sorted(_marked()):
        lock = Path(word)
        if (only is not None and lock != only.absolute()) or is_living(lock, owner):
            continue
        with claimed(lock, owner) as is_dead:
            ended = end_run(RunId(run_id), lock) if is_dead else 0
        if ended:
            swept.append(Swept(RunId(run_id), lock, {"processes": ended}))
    return swept


def stop_run(run_id: RunId, run_folder: Path) -> None:
    """End all processes of one run, whose harness is dead."""
    end_run(run_id, run_folder / "lock")


def end_run(run_id: RunId, lock: Path) -> int:
    """Kill every process that bears the run's mark; how many there were."""
    killed: set[int] = set()

    def none_left() -> bool:
        numbers = [
            number
            for (found, where, _), members in _marked().items()
            if found == run_id and Path(where) == lock
            for number in members
        ]
        for number in numbers:
            _kill(number, run_id, lock)
        killed.update(numbers)
        return not numbers

    Retrying(
        retry=retry_if_not_result(bool),
        stop=stop_after_delay(_PATIENCE_S),
        wait=wait_fixed(_INTERVAL_S),
        retry_error_callback=lambda _: False,
    )(none_left)
    return len(killed)


def _kill(number: int, run_id: RunId, lock: Path) -> None:
    with suppress(ProcessLookupError, PermissionError):
        descriptor = os.pidfd_open(number)
        try:
            # The number may have gone to another process since it was read.
            marks = environment(number)
            if (marks.get(RUN_VARIABLE), marks.get(LOCK_VARIABLE)) == (run_id, str(lock)):
                signal.pidfd_send_signal(descriptor, signal.SIGKILL)
        finally:
            os.close(descriptor)


def _marked() -> dict[tuple[str, str, str], list[int]]:
    """Numbers of the living processes of each run, by its id, lock and owner."""
    found: defaultdict[tuple[str, str, str], list[int]] = defaultdict(list)
    for each in all_processes():
        if each.state in ENDED or each.number == os.getpid():
            continue
        marks = environment(each.number)
        run_id, lock = marks.get(RUN_VARIABLE), marks.get(LOCK_VARIABLE)
        if run_id and lock and process(each.number) is not None:
            found[run_id, lock, marks.get(OWNER_VARIABLE, "")].append(each.number)
    return found
