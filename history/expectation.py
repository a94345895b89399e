"""Expectation of a suite for one of its runs, as it stands beside the run's folder.

The one definition of an expected violation, for gate and lake: the suite that started the run said
``expect = "invalid"``. A planted bug alone is none: nobody said that it must be found. Source:
docs/gate.md.
"""

from contextlib import suppress
from pathlib import Path
from typing import Final

import msgspec

from splitbrain.contracts.errors import UNREADABLE

#: Record of a suite's attempt; the run's folder lies two below its folder.
ATTEMPT_RECORD: Final = "attempt.json"
INVALID: Final = "invalid"


class _Attempt(msgspec.Struct, frozen=True):
    expect: str = ""


def expects_violation(run_folder: Path) -> bool:
    """Return whether the suite that started the run expects a violation; False without one."""
    with suppress(OSError, IndexError, *UNREADABLE):
        record = run_folder.resolve().parents[1] / ATTEMPT_RECORD
        return msgspec.json.decode(record.read_bytes(), type=_Attempt).expect == INVALID
    return False
