"""Ends an await that takes too long, with one timer for many awaits.

Making and cancelling a timer for each operation costs more than all else that an operation costs
the harness. Here the timer of an earlier operation, when it rings in a later one, is set anew for
what is left; only an operation that is really late is ever cancelled.
"""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

_Result = TypeVar("_Result")


class Deadline:
    """Used by one task at a time, again and again.

    Args:
        limit_s: longest time for one await, seconds.
    """

    def __init__(self, limit_s: float) -> None:
        self._limit_s = limit_s
        self._loop: asyncio.AbstractEventLoop | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._task: asyncio.Task[Any] | None = None
        self._due = 0.0
        self._expired = False

    async def hold(self, work: Coroutine[Any, Any, _Result]) -> _Result:
        """Await ``work``.

        Raises:
            TimeoutError: it took longer than the limit and was cancelled.
        """
        task = asyncio.current_task()
        assert task is not None
        loop = self._loop
        if loop is None:
            loop = self._loop = asyncio.get_running_loop()
        cancels_before = task.cancelling()
        self._due, self._expired, self._task = loop.time() + self._limit_s, False, task
        if self._timer is None:
            self._timer = loop.call_at(self._due, self._ring)
        try:
            return await work
        except asyncio.CancelledError as error:
            # Somebody else may have cancelled it too; then that is what counts.
            if self._expired and task.cancelling() == cancels_before + 1:
                raise TimeoutError from error
            raise
        finally:
            self._task = None
            if self._expired:
                # However it ended: our cancellation goes no further.
                task.uncancel()

    def close(self) -> None:
        """Stop the timer."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _ring(self) -> None:
        self._timer = None
        assert self._loop is not None
        if self._task is None:
            return
        if self._loop.time() < self._due:
            self._timer = self._loop.call_at(self._due, self._ring)
            return
        self._expired = True
        self._task.cancel()
