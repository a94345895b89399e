"""Owner of a thing: the process that made it, as a word that outlives it; whether it still runs.

A run's lock tells the living from the dead as long as its file can be seen. Where the file was
deleted, or lies where this process cannot look, the word on the run's resources is the second
witness. It never says that something is dead which it cannot know to be dead: a process of another
machine, or of another container beside the same engine, is not to be seen from here.
"""

import itertools
import os
import select
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path

import msgspec

_PROC = Path("/proc")
_MACHINE = Path("/etc/machine-id")

#: Field of ``/proc/<n>/stat``, counted after the program's name: when it started, in clock ticks.
_STARTED_FIELD = 19


class Owner(msgspec.Struct, frozen=True):
    """One process, told from every other one there was."""

    #: Of the operating system's installation; empty where it has none.
    machine: str
    #: Drawn at each start of the kernel.
    boot: str
    #: Within which its number means anything.
    process_namespace: str
    process: int
    #: Clock ticks from the kernel's start to the process's; numbers of processes come again.
    started_ticks: int

    def word(self) -> str:
        """As it stands in a label."""
        return "/".join(map(str, msgspec.structs.astuple(self)))


def this_process() -> Owner:
    """Return the process that asks."""
    return _owner(os.getpid())


def _owner(process: int) -> Owner:
    return Owner(
        machine=_line(_MACHINE),
        boot=_line(_PROC / "sys" / "kernel" / "random" / "boot_id"),
        process_namespace=_namespace(),
        process=process,
        started_ticks=_started_ticks(process) or 0,
    )


def owner_of_word(word: str) -> Owner | None:
    """Read the word of :meth:`Owner.word`; None for anything else."""
    match word.split("/"):
        case [machine, boot, namespace, process, started] if (
            process.isdecimal() and started.isdecimal()
        ):
            return Owner(machine, boot, namespace, int(process), int(started))
        case _:
            return None


def is_known_dead(owner: Owner) -> bool:
    """Whether the process ended; False also where that cannot be seen from here."""
    here = this_process()
    if owner.machine != here.machine:
        return False
    if owner.boot != here.boot:
        # Where machines have no identity, as in containers, it may be another machine's start.
        return bool(owner.machine)
    if owner.process_namespace != here.process_namespace:
        return False
    started = _started_ticks(owner.process)
    return started != owner.started_ticks and not (started is None and _is_hidden(owner.process))


def _is_hidden(process: int) -> bool:
    """Whether it runs and is another user's whom ``/proc`` does not show (``hidepid``)."""
    if (_PROC / str(process)).exists():
        return False
    try:
        os.kill(process, 0)
    except PermissionError:
        return True
    except (OSError, OverflowError):
        return False
    return False


def is_running(process: int) -> bool:
    """Whether a process of that number runs, one that only waits to be reaped apart."""
    return _started_ticks(process) is not None


def orphans(modules: Collection[str]) -> list[int]:
    """Processes that run one of these modules for an owner that is dead, by their numbers.

    Their command lines end with the owner's number. They are still healing, stopping, tidying up,
    and will end by themselves.
    """
    found: list[int] = []
    here = _namespace()
    for entry in _PROC.glob("[0-9]*"):
        # It may end while it is looked at, or be another user's.
        with suppress(OSError):
            arguments = (entry / "cmdline").read_bytes().decode(errors="replace").split("\0")
            pairs = itertools.pairwise(arguments)
            is_ours = any(option == "-m" and module in modules for option, module in pairs)
            # Terminated, not separated: the last word is empty.
            owner = arguments[-2] if len(arguments) > 1 else ""
            if not is_ours or not owner.isdecimal() or _namespace(entry.name) != here:
                continue
            if not is_running(int(owner)):
                found.append(int(entry.name))
    return sorted(found)


def await_end(process: int, timeout_s: float) -> bool:
    """Wait for the end of a process that need not be a child; whether it ended in time."""
    try:
        descriptor = os.pidfd_open(process)
    except ProcessLookupError:
        return True
    try:
        poll = select.poll()
        poll.register(descriptor, select.POLLIN)
        return bool(poll.poll(timeout_s * 1000))
    finally:
        os.close(descriptor)


def _started_ticks(process: int) -> int | None:
    """None for a process that is gone, or that only waits for its parent to look at its end."""
    try:
        text = (_PROC / str(process) / "stat").read_text()
    except OSError:
        return None
    # The program's name stands in parentheses and may hold anything.
    state, *fields = text.rpartition(")")[2].split()
    return None if state in "ZX" else int(fields[_STARTED_FIELD - 1])


def _namespace(process: str = "self") -> str:
    try:
        # Written pid:[4026531836].
        return str((_PROC / process / "ns" / "pid").readlink()).strip("pid:[]")
    except OSError:
        return ""


def _line(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:
        return ""
