"""Asks Porcupine, the peer that the checkers are measured against and refereed by.

The program is ``bench/porcupine``; it is built where Go is. Must never be needed by anything but
the programs of this folder.
"""

import json
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import msgspec

from bench.history_columns import HistoryColumns

SOURCE = Path(__file__).parent / "porcupine"
PROGRAM = Path(__file__).parents[1] / ".tools" / "porcupine"


class PeerAnswer(msgspec.Struct, frozen=True):
    """Porcupine's answer on one history and its cost."""

    name: str
    #: ``valid``, ``invalid`` or ``unknown``.
    verdict: str
    cpu_s: float
    wall_s: float
    #: Peak of the process so far.
    peak_mib: int
    #: Why it is ``unknown``: ``time`` or ``memory``.
    reason: str = ""


def is_built() -> bool:
    """Whether Porcupine can be asked; builds the program where it is missing and Go is there."""
    if not PROGRAM.is_file() and shutil.which("go"):
        PROGRAM.parent.mkdir(exist_ok=True)
        build = ["go", "build", "-trimpath", "-o", str(PROGRAM), "."]
        subprocess.run(build, cwd=SOURCE, check=True)
    return PROGRAM.is_file()


def ask(
    histories: Sequence[HistoryColumns], limit_s: float, memory_mib: int, repeats: int = 1
) -> list[PeerAnswer]:
    """One answer per history.

    Args:
        histories: asked about in one process, and in another where that ended over one of them.
        limit_s: CPU seconds for one check.
        memory_mib: for a process.
        repeats: checks of each history, the fastest of which counts.
    """
    options = [f"-limit={limit_s}s", f"-memory-mib={memory_mib}", f"-repeats={repeats}"]
    answers: list[PeerAnswer] = []
    while len(answers) < len(histories):
        lines = b"".join(history.to_porcupine() for history in histories[len(answers) :])
        done = subprocess.run(
            [str(PROGRAM), *options], input=lines, stdout=subprocess.PIPE, check=True
        )
        given = [msgspec.convert(json.loads(line), PeerAnswer) for line in done.stdout.splitlines()]
        assert given, "Porcupine's program ended without an answer"
        answers += given
    return answers
