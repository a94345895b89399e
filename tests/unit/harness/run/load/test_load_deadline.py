"""End of a client's call that takes too long."""

import asyncio
from collections.abc import Callable, Coroutine
from functools import wraps
from typing import Any

import pytest

from splitbrain.harness.run.clients import Deadline


def in_loop(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    @wraps(test)
    def run(**arguments: Any) -> None:
        asyncio.run(test(**arguments))

    return run


async def answer_after(seconds: float) -> str:
    await asyncio.sleep(seconds)
    return "answer"


def nothing_is_left_over() -> bool:
    task = asyncio.current_task()
    return task is not None and task.cancelling() == 0


@in_loop
async def test_what_is_in_time_is_left_alone_and_what_is_late_is_ended() -> None:
    deadline = Deadline(0.3)
    for _ in range(3):
        assert await deadline.hold(answer_after(0.16)) == "answer"
    with pytest.raises(TimeoutError):
        await deadline.hold(answer_after(60))
    assert await deadline.hold(answer_after(0.16)) == "answer"
    deadline.close()
    assert nothing_is_left_over()


@in_loop
async def test_many_calls_need_one_timer() -> None:
    loop = asyncio.get_running_loop()
    made: list[float] = []
    call_at = loop.call_at

    def counting(when: float, *arguments: Any, **options: Any) -> asyncio.TimerHandle:
        made.append(when)
        return call_at(when, *arguments, **options)

    async def answer() -> str:
        return "answer"

    loop.call_at = counting  # type: ignore[method-assign,assignment]
    deadline = Deadline(60)
    for _ in range(100):
        await deadline.hold(answer())
    assert len(made) == 1
    deadline.close()


@in_loop
async def test_a_cancellation_from_elsewhere_is_no_timeout() -> None:
    deadline = Deadline(60)
    task = asyncio.ensure_future(deadline.hold(answer_after(60)))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    deadline.close()


@pytest.mark.parametrize("raises", [False, True])
@in_loop
async def test_a_call_that_ends_in_spite_of_its_timeout_counts_and_leaves_nothing_behind(
    raises: bool,
) -> None:
    async def stubborn() -> str:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            if raises:
                raise ValueError("broken") from None
            return "answer"
        raise AssertionError

    deadline = Deadline(0.01)
    if raises:
        with pytest.raises(ValueError, match="broken"):
            await deadline.hold(stubborn())
    else:
        assert await deadline.hold(stubborn()) == "answer"
    assert nothing_is_left_over()
    await asyncio.sleep(0)  # a cancellation left over would show here
    deadline.close()


@in_loop
async def test_a_cancellation_from_elsewhere_outweighs_a_timeout() -> None:
    deadline = Deadline(0.01)
    expired = asyncio.Event()

    async def slow_to_go() -> str:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            expired.set()
            await asyncio.sleep(60)
        raise AssertionError

    task = asyncio.ensure_future(deadline.hold(slow_to_go()))
    await expired.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    deadline.close()


@in_loop
async def test_what_a_call_raises_comes_through() -> None:
    async def broken() -> str:
        raise ValueError("broken")

    deadline = Deadline(60)
    with pytest.raises(ValueError, match="broken"):
        await deadline.hold(broken())
    deadline.close()
