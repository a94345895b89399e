"""The end of a run's course, as ``phases.jsonl`` tells it to whoever asks whether it was sealed.

Lenient: of a file that is torn or broken the lines that can be read count. The phases themselves
are ``harness.phases``.
"""

import contextlib
from typing import Final

import msgspec

from splitbrain.contracts.errors import UNREADABLE
from splitbrain.history.run_folder import RunFolder

#: The last step of a run, after which its evidence is sealed, and what says that it failed.
LAST_PHASE: Final = "torn-down"
_FAILED: Final = "failed"


class _Phase(msgspec.Struct, frozen=True):
    phase: str


def came_to_its_end(folder: RunFolder) -> bool:
    """Whether the run came to where its evidence is sealed."""
    try:
        lines = folder.phases.read_bytes().splitlines()
    except OSError:
        return False
    reached: set[str] = set()
    for line in lines:
        with contextlib.suppress(*UNREADABLE):
            reached.add(msgspec.json.decode(line, type=_Phase).phase)
    return LAST_PHASE in reached and _FAILED not in reached
