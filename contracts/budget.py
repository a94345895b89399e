"""A budget that pure code polls, so that a caller can bound its time and memory."""

from typing import Protocol


class Budget(Protocol):
    """Limit polled by long computations; the caller owns the clock and the memory gauge."""

    def exhausted(self) -> str | None:
        """Return the reason to stop now ("time budget of 60 s used up"), or None to go on."""
        ...


class Unlimited:
    """A budget that never ends, for tests and small inputs."""

    def exhausted(self) -> str | None:
        """Return None: never stop."""
        return None
