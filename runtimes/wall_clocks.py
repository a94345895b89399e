"""Wall clocks of nodes' programs by libfaketime: how a program gets one, and who cannot.

A program that is preloaded with the library reads its offset from a file at each look at the
clock. The monotonic clock, sleeps and file times stay as they are: no rate is ever set, which
would scale timeouts too. The pods' image has a copy of this module beside its tools, so it needs
the standard library alone.

Source: libfaketime's README; elf(5) for PT_INTERP.
"""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

#: The build for programs with threads; part of its path in a process's memory map.
LIBRARY: Final = "libfaketimeMT.so.1"
#: The file's content for the true time.
TRUE_TIME: Final = "+0\n"
#: How much of a program file tells what kind it is.
HEAD_BYTES: Final = 65_536
#: Prints true, faked and true nanoseconds. The library leaves two files of each process that had it
#: first; the shell's children share the shell's.
READING: Final = (
    "env -u LD_PRELOAD date +%s%N && date +%s%N && env -u LD_PRELOAD date +%s%N;"
    "rm -f /dev/shm/faketime_shm_$$ /dev/shm/sem.faketime_sem_$$"
)

_PT_INTERP: Final = 3
_GO_NOTE: Final = b"Go build ID:"
_NANOSECONDS_PER_MS: Final = 1_000_000


def clock_environment(library: str, file: str, own: Mapping[str, str]) -> dict[str, str]:
    """Return the environment besides ``own`` with which a program reads its clock from a file.

    Library and file are paths as the program sees them. Its own preloaded libraries stay.
    """
    preloaded = own.get("LD_PRELOAD", "")
    return {
        "LD_PRELOAD": f"{library}:{preloaded}" if preloaded else library,
        "FAKETIME_TIMESTAMP_FILE": file,
        "FAKETIME_NO_CACHE": "1",
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        # Deadlines of waits by the monotonic clock stay what they are. Else the library adds the
        # true time to them, and such a wait ends by a signal alone.
        "FAKETIME_FORCE_MONOTONIC_FIX": "0",
        "NO_FAKE_STAT": "1",
    }


def offset_line(offset_us: int, drift_ppm: int = 0, elapsed_ns: int = 0) -> str:
    """Return the file's content so long after a warp."""
    ahead_us = offset_us + elapsed_ns * drift_ppm // 1_000_000_000
    seconds, microseconds = divmod(abs(ahead_us), 1_000_000)
    return f"{'-' if ahead_us < 0 else '+'}{seconds}.{microseconds:06d}\n"


def write_clock(file: Path, content: str) -> None:
    """Replace the file at once: a reader sees the old or the new one, whole."""
    fresh = file.with_name(f"{file.name}.{os.getpid()}")
    fresh.write_text(content)
    fresh.replace(file)


def offset_of_reading(printed: str) -> int | None:
    """Milliseconds that the faked clock is ahead, from what ``READING`` printed; None: nothing."""
    try:
        before, faked, after = (int(word) for word in printed.split())
    except ValueError:
        return None
    return round((faked - (before + after) / 2) / _NANOSECONDS_PER_MS)


def why_no_clock(head: bytes, is_loaded: bool) -> str | None:
    """Why this program goes by the true time, one clause; None: it does not.

    Judged by the first ``HEAD_BYTES`` of its file, and whether its memory map shows the library.
    """
    if _GO_NOTE in head:
        return "its program is made by Go, which asks the kernel for the time and no library"
    if is_loaded:
        return None
    if not is_dynamic(head):
        return "its program is linked statically, so that libfaketime cannot be put before it"
    return "its program's loader did not take libfaketime (another C library, or raised rights)"


def is_dynamic(head: bytes) -> bool:
    """Whether an ELF file names a loader (PT_INTERP); False for what is no ELF file."""
    if len(head) < 64 or head[:4] != b"\x7fELF":
        return False
    is_wide, order = head[4] == 2, "little" if head[5] == 1 else "big"

    def number(at: int, size: int) -> int:
        return int.from_bytes(head[at : at + size], "little" if order == "little" else "big")

    table = number(32, 8) if is_wide else number(28, 4)
    size, count = (number(54, 2), number(56, 2)) if is_wide else (number(42, 2), number(44, 2))
    return any(number(table + size * index, 4) == _PT_INTERP for index in range(count))
