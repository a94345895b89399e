"""Places in the code of users: the line of theirs at which something of theirs went wrong. Pure."""

import traceback
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, Final

from splitbrain.contracts.errors import AdapterError, HarnessError, in_one_line
from splitbrain.plugins.files import is_of_file
from splitbrain.plugins.offers import entry_points_of

#: Entry points by which packages offer what they have.
_GROUPS: Final = tuple(
    f"splitbrain.{kind}" for kind in ("systems", "workloads", "models", "checkers", "nemesis")
)


def place_of(function: Any) -> str:
    """Return ``shelf.py, line 41`` of a function; of what is no function of Python its name."""
    code = getattr(function, "__code__", None)
    if not isinstance(code, CodeType):
        return str(getattr(function, "__qualname__", function))
    return f"{Path(code.co_filename).name}, line {code.co_firstlineno}"


def authors_place(error: BaseException) -> str | None:
    """Return the innermost place of an error that lies in a file or package of users.

    As in ``shelf.py, line 12``. None where no such code was at work: the error is ours.
    """
    found: str | None = None
    for frame, line in traceback.walk_tb(error.__traceback__):
        if _is_of_users(frame):
            found = f"{Path(frame.f_code.co_filename).name}, line {line}"
    return found


def authors_error(error: BaseException) -> HarnessError | None:
    """Return the failure that an error of users' code is; None where it is ours."""
    place = authors_place(error)
    if place is None:
        return None
    problem = f"it raised {in_one_line(error)}"
    return AdapterError("use the adapter", place, problem, "Repair the adapter.")


def _is_of_users(frame: FrameType) -> bool:
    name = str(frame.f_globals.get("__name__"))
    if is_of_file(name, frame.f_code.co_filename):
        return True
    points = (point for group in _GROUPS for point in entry_points_of(group))
    return name.partition(".")[0] in {point.module.partition(".")[0] for point in points}
