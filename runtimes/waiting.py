"""Waiting for what nobody announces, and for all of some acts; for all runtimes."""

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Final, TypeVar

from tenacity import Retrying, retry_if_not_result, stop_after_delay, wait_fixed

_AT_ONCE: Final = 16

_Thing = TypeVar("_Thing")
_Result = TypeVar("_Result")


def await_true(condition: Callable[[], bool], patience_s: float, interval_s: float) -> bool:
    """Look again and again; whether the condition held, the last look begun when time is over."""
    return Retrying(
        retry=retry_if_not_result(bool),
        stop=stop_after_delay(patience_s),
        wait=wait_fixed(interval_s),
        retry_error_callback=lambda _: False,
    )(condition)


def on_all(things: Iterable[_Thing], action: Callable[[_Thing], _Result]) -> list[_Result]:
    """Do it to all side by side; the first failure is raised when all are done."""
    with ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="on-all") as pool:
        return list(pool.map(action, things))
