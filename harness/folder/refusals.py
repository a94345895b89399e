"""Actions that the operating system refuses, told as failures of the harness."""

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from splitbrain.contracts.errors import HarnessError

#: Next step where a disk below the folder of runs refuses.
MAKE_ROOM: Final = "Make room on that disk, or choose another --runs-folder."
#: And where it cannot even be made.
ELSEWHERE: Final = "Choose another place with --runs-folder."


@contextmanager
def tell_refusal(action: str, target: Path | str, next_step: str = MAKE_ROOM) -> Generator[None]:
    """A context: what the system refuses in it is a failure of this action.

    Raises:
        HarnessError: for an ``OSError``.
    """
    try:
        yield
    except OSError as error:
        problem = error.strerror or str(error)
        raise HarnessError(action, str(target), problem, next_step) from error
