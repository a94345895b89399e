"""Processes as ``/proc`` shows them: descendants, states, use of the machine.

Standard library alone. It reads; it never sends a signal.

Sources: proc_pid_stat(5), getauxval(3).
"""

import os
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

_PROC: Final = Path("/proc")
_TICKS_PER_S: Final = os.sysconf("SC_CLK_TCK")
_PAGE_BYTES: Final = os.sysconf("SC_PAGE_SIZE")

#: Entry of a program's auxiliary vector: it was started with more rights than its starter has.
_AT_SECURE: Final = 23

#: Letters of a process that is stopped, and of one that only waits to be reaped.
STOPPED: Final = frozenset("Tt")
ENDED: Final = frozenset("ZXx")


class Process(NamedTuple):
    """One line of the table."""

    number: int
    #: One letter: ``R`` running, ``S`` sleeping, ``T`` stopped, ``Z`` to be reaped, ...
    state: str
    parent: int
    cpu_seconds: float
    memory_bytes: int


def process(number: int) -> Process | None:
    """Return the table's entry of one process, None if it is gone."""
    try:
        text = (_PROC / str(number) / "stat").read_text()
    except OSError:
        return None
    # The program's name stands in parentheses and may hold anything.
    fields = text.rpartition(")")[2].split()
    return Process(
        number=number,
        state=fields[0],
        parent=int(fields[1]),
        cpu_seconds=(int(fields[11]) + int(fields[12])) / _TICKS_PER_S,
        memory_bytes=int(fields[21]) * _PAGE_BYTES,
    )


def all_processes() -> Iterator[Process]:
    """Every process that can be seen from here."""
    for name in os.listdir(_PROC):  # noqa: PTH208 - names alone, thousands of them
        if name.isdecimal() and (found := process(int(name))) is not None:
            yield found


def descendants(number: int) -> list[int]:
    """Return the living descendants of a process, parents before children."""
    children: dict[int, list[Process]] = {}
    for each in all_processes():
        children.setdefault(each.parent, []).append(each)
    found: list[int] = []
    waiting = [number]
    while waiting:
        for child in children.get(waiting.pop(), []):
            waiting.append(child.number)
            if child.state not in ENDED:
                found.append(child.number)
    return found


def user_of(number: int) -> int | None:
    """Id of the user who started a process and whose rights it has; None where that is not one.

    A program with more rights than its starter still has the starter's environment, also once it
    has taken on its other user wholly; the kernel tells it so by ``AT_SECURE``.
    """
    folder = _PROC / str(number)
    try:
        status = (folder / "status").read_text()
        vector = (folder / "auxv").read_bytes()
    except OSError:
        return None
    users = next(line for line in status.splitlines() if line.startswith("Uid:")).split()[1:]
    pairs = struct.iter_unpack("@LL", vector)
    is_secure = any(value for kind, value in pairs if kind == _AT_SECURE)
    return int(users[0]) if len(set(users)) == 1 and not is_secure else None


def environment(number: int) -> dict[str, str]:
    """Return the environment that a process was started with; empty where it is not to be seen."""
    try:
        content = (_PROC / str(number) / "environ").read_bytes()
    except OSError:
        return {}
    pairs = (item.partition(b"=") for item in content.split(b"\0") if item)
    return {os.fsdecode(name): os.fsdecode(value) for name, _, value in pairs}
