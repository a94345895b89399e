"""Errors as a test sees them: one sentence at the test's own line."""

from types import TracebackType

from splitbrain.contracts.errors import HarnessError

__tracebackhide__ = True  # pytest shows the test's own line


class OneSentence:
    """A context: leaves out of an error of ours where in us it was found."""

    def __enter__(self) -> None:
        """Nothing is to be done."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        """Raise an error of ours anew, without its story."""
        if isinstance(error, HarnessError):
            raise error.with_traceback(None) from None
