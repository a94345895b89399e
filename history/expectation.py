"""Words of a suite about one of its runs, as they stand beside the run's folder.

The one definition of an expected violation, for gate and lake: the suite that started the run said
``expect = "invalid"``. A planted bug alone is none: nobody said that it must be found. And the one
definition of a run that was done again. Source: docs/gate.md.
"""

import re
from contextlib import suppress
from pathlib import Path
from typing import Final

import msgspec

from splitbrain.contracts.errors import UNREADABLE
from splitbrain.history.run_folder import RunFolder

#: Record of a suite's attempt; the run's folder lies two below its folder.
ATTEMPT_RECORD: Final = "attempt.json"
_ATTEMPT: Final = re.compile(r"attempt-(\d{1,9})")
INVALID: Final = "invalid"


class _Attempt(msgspec.Struct, frozen=True):
    expect: str = ""


class _Results(msgspec.Struct, frozen=True):
    verdict: str = ""


def expects_violation(run_folder: Path) -> bool:
    """Return whether the suite that started the run expects a violation; False without one."""
    with suppress(OSError, IndexError, *UNREADABLE):
        record = run_folder.resolve().parents[1] / ATTEMPT_RECORD
        return msgspec.json.decode(record.read_bytes(), type=_Attempt).expect == INVALID
    return False


def was_done_again(run_folder: Path) -> bool:
    """Return whether it was cut off undecided, and its suite has begun the run anew beside it.

    A violation that was found in it since counts all the same.
    """
    with suppress(OSError, IndexError, *UNREADABLE):
        attempt = run_folder.resolve().parents[1]
        name = _ATTEMPT.fullmatch(attempt.name)
        if name is None or not (attempt / ATTEMPT_RECORD).is_file():
            return False
        later = attempt.with_name(f"attempt-{int(name[1]) + 1}")
        if not (later / ATTEMPT_RECORD).is_file():
            return False
        results = RunFolder(run_folder).results
        if not results.exists():
            return True
        return msgspec.json.decode(results.read_bytes(), type=_Results).verdict != INVALID
    return False
