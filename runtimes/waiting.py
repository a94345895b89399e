"""Waiting for something that nobody announces, by looking again and again; for all runtimes."""

from collections.abc import Callable

from tenacity import Retrying, retry_if_not_result, stop_after_delay, wait_fixed


def await_true(condition: Callable[[], bool], patience_s: float, interval_s: float) -> bool:
    """Whether the condition held within the time; the last look may begin when that is over."""
    return Retrying(
        retry=retry_if_not_result(bool),
        stop=stop_after_delay(patience_s),
        wait=wait_fixed(interval_s),
        retry_error_callback=lambda _: False,
    )(condition)
