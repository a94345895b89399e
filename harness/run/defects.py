"""Sentences on a defect of ours, or of an adapter."""

from typing import cast

from splitbrain.contracts.errors import HarnessError

RUN_FOLDER = "the run folder"


def first_of(error: BaseException) -> BaseException:
    """The error itself, or of a group the first: where several failed at once it tells enough."""
    while isinstance(error, BaseExceptionGroup):
        error = cast("BaseExceptionGroup[BaseException]", error).exceptions[0]
    return error


def defect(error: BaseException, report_with: str = RUN_FOLDER) -> HarnessError:
    """Return the failure of a run for what should never have been raised.

    Args:
        error: what was raised, or a group of it.
        report_with: what tells more of it.
    """
    first = first_of(error)
    return HarnessError(
        "carry out the run",
        "splitbrain itself",
        f"{type(first).__name__}: {first}",
        f"This is a defect of splitbrain; please report it with {report_with}.",
    )


def failure(error: BaseException) -> HarnessError:
    """Return the run's failure that an error or a group stands for: itself, or a defect of ours."""
    first = first_of(error)
    return first if isinstance(first, HarnessError) else defect(first)
