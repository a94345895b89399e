"""Waiting for a condition, never for a length of time."""

from collections.abc import Callable

from tenacity import Retrying, retry_if_not_result, stop_after_delay, wait_fixed


def await_true(condition: Callable[[], object], patience_s: float = 30.0) -> None:
    """Ask until it holds.

    Raises:
        RetryError: it did not within the patience.
    """
    Retrying(
        retry=retry_if_not_result(bool), stop=stop_after_delay(patience_s), wait=wait_fixed(0.02)
    )(condition)
