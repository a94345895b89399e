"""Files that may be mutated, by room, and who is asked about a mutant of each.

``quorum``: consensus and storage, which tests and worlds of registers judge. ``above``: what stands
above the log (controllers, brokers, metadata, registers, the host), judged by worlds alone: of
metadata, or of registers. Files that run on machines only are in neither.
"""

import re
from pathlib import Path
from typing import Final, Literal

ROOT: Final = Path(__file__).resolve().parents[1]
Room = Literal["quorum", "above"]
ROOMS: Final[tuple[Room, ...]] = ("quorum", "above")
_LEFT_OUT: Final = re.compile(r"(disk|__init__)\.py")
#: Folders with all that they hold, and the state machine of the worlds that judge them.
_FOLDERS: Final[dict[Room, dict[str, str]]] = {
    "quorum": {"nodes/quorum": "registers", "nodes/storage": "registers"},
    "above": {
        "nodes/controller": "metadata",
        "nodes/metadata": "metadata",
        "nodes/broker": "metadata",
        "nodes/server/controller": "metadata",
        "nodes/server/broker": "metadata",
        "nodes/registers": "registers",
        "nodes/server/registers": "registers",
        "nodes/server/host": "registers",
        "nodes/server/start": "registers",
    },
}


def files_of(room: Room) -> list[str]:
    """Return a room's files, relative to the project."""
    return [
        path.relative_to(ROOT).as_posix()
        for folder in _FOLDERS[room]
        for path in sorted((ROOT / folder).rglob("*.py"))
        if not _LEFT_OUT.fullmatch(path.name)
    ]


def room_of(file: str) -> Room:
    """Return the room of a file that may be mutated."""
    return next(
        room for room in ROOMS for folder in _FOLDERS[room] if file.startswith(f"{folder}/")
    )


def state_machine_of(file: str) -> str:
    """Return the state machine of the worlds that are asked about a mutant of the file."""
    folders = _FOLDERS[room_of(file)]
    return next(folders[folder] for folder in folders if file.startswith(f"{folder}/"))
