"""Tries the steps of a run one by one, so that none keeps the next one from being done.

A failure of the environment and a defect of ours end alike: the run's ``Stop`` has it, and the next
step goes on. The story of a defect is kept in the run folder.
"""

import threading
import traceback
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from types import TracebackType
from typing import cast

from splitbrain.contracts.distribution import PACKAGE
from splitbrain.contracts.errors import HarnessError
from splitbrain.harness.console.stop import Stop
from splitbrain.history.run_folder import RunFolder
from splitbrain.plugins.blame import authors_error

#: Where the traceback of a defect of ours is kept.
DEFECT_FILE = "defect.txt"


class Attempts:
    """The attempts of one run."""

    def __init__(self, folder: RunFolder, stop: Stop) -> None:
        self._story = folder.root / DEFECT_FILE
        self._stop = stop

    def attempt(self, step: Callable[[], None]) -> bool:
        """Perform a step of the run; whether it succeeded. A failure is kept, not raised."""
        try:
            step()
        except HarnessError as error:
            self._stop.fail(error)
        # Whatever is wrong in us or in an adapter must cost neither the verdict nor the clean-up.
        except (Exception, SystemExit) as error:  # noqa: BLE001
            self.defect(error)
        else:
            return True
        return False

    def defect(self, error: BaseException) -> None:
        """Something of ours is broken; the run ends."""
        with suppress(OSError):
            self._story.write_text("".join(traceback.format_exception(error)), encoding="utf-8")
        self._stop.fail(defect(error, str(self._story)))

    @contextmanager
    def watching_threads(self) -> Generator[None]:
        """Have a thread's death told while the context lasts: what it watched is unwatched now.

        Threads of others, such as a test's own, are left to who watched them before.
        """
        before = threading.excepthook

        def on_death(arguments: threading.ExceptHookArgs) -> None:
            if arguments.exc_value is not None and _is_ours(arguments.exc_traceback):
                self.defect(arguments.exc_value)
            else:
                before(arguments)

        threading.excepthook = on_death
        try:
            yield
        finally:
            threading.excepthook = before


def _is_ours(story: TracebackType | None) -> bool:
    """Return whether a thread of this traceback ran a function of this package."""
    modules = (str(frame.f_globals.get("__name__")) for frame, _ in traceback.walk_tb(story))
    began = next((name for name in modules if name != threading.__name__), "")
    return began.startswith(f"{PACKAGE}.")


def first_of(error: BaseException) -> BaseException:
    """The error itself, or of a group the first: where several failed at once it tells enough."""
    while isinstance(error, BaseExceptionGroup):
        error = cast("BaseExceptionGroup[BaseException]", error).exceptions[0]
    return error


def defect(error: BaseException, report_with: str = "the run folder") -> HarnessError:
    """Return the failure of a run for what should never have been raised, or a group of it.

    That is a defect of ours, unless code of users was at work.
    """
    first = first_of(error)
    if isinstance(first, HarnessError):
        return first
    if (theirs := authors_error(first)) is not None:
        return theirs
    problem = f"{type(first).__name__}: {first}"
    next_step = f"This is a defect of splitbrain; please report it with {report_with}."
    return HarnessError("carry out the run", "splitbrain itself", problem, next_step)


def failure(error: BaseException) -> HarnessError:
    """Return the run's failure that an error or a group stands for: itself, or a defect of ours."""
    return defect(error)
