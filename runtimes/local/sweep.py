"""Ends what a dead run left on this machine: processes, and nothing but processes.

Every process of a run carries the path of the run's lock in its environment. A cluster dies with
its host process, and that with the harness, so there is hardly ever anything to end. It must never
touch a living run, nor a process that does not say to which run it belongs.

Anybody can start a process that says anything. So a mark speaks for the user of its process alone:
it is believed where the lock is that user's too, and it ends no process of another one.
"""

import os
import signal
from collections import defaultdict
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

from splitbrain.contracts.names import RunId
from splitbrain.runtimes.control_groups import possible_bases, sweep_groups
from splitbrain.runtimes.dead_runs import Swept, claimed, is_living
from splitbrain.runtimes.local.process_table import ENDED, all_processes, environment, user_of
from splitbrain.runtimes.waiting import await_true

#: Marks in the environment of a run's processes.
RUN_VARIABLE: Final = "SPLITBRAIN_RUN"
LOCK_VARIABLE: Final = "SPLITBRAIN_RUN_LOCK"
OWNER_VARIABLE: Final = "SPLITBRAIN_RUN_OWNER"

_PATIENCE_S: Final = 10.0
_INTERVAL_S: Final = 0.02


class _Mark(NamedTuple):
    """The run that a process names as its own."""

    run_id: RunId
    #: Path of the run's lock.
    lock: str
    #: Word of the process that made it; empty: it does not say.
    owner: str
    #: Id of the user who says so.
    user: int


def sweep_machine(only: Path | None = None) -> list[Swept]:
    """End the processes of every dead run of this user (all users for root), or of one run.

    All that a node writes is in the run folder already: there is nothing to save.
    """
    sweep_groups(possible_bases())
    swept: list[Swept] = []
    for mark in sorted(_marked()):
        lock = Path(mark.lock)
        if (only is not None and lock != only.resolve()) or is_living(lock, mark.owner, mark.user):
            continue
        with claimed(lock, mark.owner, user=mark.user) as is_dead:
            ended = end_run(mark.run_id, lock, mark.user) if is_dead else 0
        if ended:
            swept.append(Swept(mark.run_id, lock, {"processes": ended}))
    return swept


def stop_run(run_id: RunId, run_folder: Path) -> None:
    """End all processes of one run of this user, whose harness is dead."""
    end_run(run_id, run_folder.resolve() / "lock", os.getuid())


def end_run(run_id: RunId, lock: Path, user: int) -> int:
    """Kill every process of a user that bears the run's mark; how many there were."""
    killed: set[int] = set()

    def none_left() -> bool:
        numbers = [
            number
            for mark, members in _marked().items()
            if (mark.run_id, Path(mark.lock), mark.user) == (run_id, lock, user)
            for number in members
        ]
        for number in numbers:
            _kill(number, run_id, lock, user)
        killed.update(numbers)
        return not numbers

    await_true(none_left, _PATIENCE_S, _INTERVAL_S)
    return len(killed)


def _kill(number: int, run_id: RunId, lock: Path, user: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        descriptor = os.pidfd_open(number)
        try:
            # The number may have gone to another process since it was read.
            mark = _mark_of(number)
            if mark is not None and mark[:2] == (run_id, str(lock)) and mark.user == user:
                signal.pidfd_send_signal(descriptor, signal.SIGKILL)
        finally:
            os.close(descriptor)


def _marked() -> dict[_Mark, list[int]]:
    """Numbers of the living processes of each run, by what they say of it."""
    found: defaultdict[_Mark, list[int]] = defaultdict(list)
    for each in all_processes():
        if each.state in ENDED or each.number == os.getpid():
            continue
        mark = _mark_of(each.number)
        if mark is not None:
            found[mark].append(each.number)
    return found


def _mark_of(number: int) -> _Mark | None:
    """The mark of a process; None where it has none, is gone, or was told it by another user."""
    marks = environment(number)
    run_id, lock = marks.get(RUN_VARIABLE), marks.get(LOCK_VARIABLE)
    if not run_id or not lock:
        return None
    user = user_of(number)
    # It may have become another program meanwhile, and that another user's.
    if user is None or environment(number) != marks:
        return None
    return _Mark(RunId(run_id), lock, marks.get(OWNER_VARIABLE, ""), user)
