"""End of a client's call that takes too long."""

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest

from splitbrain.harness.run.clients import Deadline


def run(scenario: Coroutine[Any, Any, None]) -> None:
    asyncio.run(scenario)


async def answer() -> str:
    return "answer"


async def answer_after(seconds: float) -> str:
    await asyncio.sleep(seconds)
    return "answer"


def test_what_is_in_time_is_left_alone_and_what_is_late_is_ended() -> None:
    async def scenario() -> None:
        deadline = Deadline(0.05)
        for _ in range(3):
            assert await deadline.hold(answer_after(0.03)) == "answer"
        with pytest.raises(TimeoutError):
            await deadline.hold(answer_after(60))
        assert await deadline.hold(answer_after(0.03)) == "answer"
        deadline.close()
        task = asyncio.current_task()
        assert task is not None
        assert task.cancelling() == 0

    run(scenario())


def test_many_calls_need_one_timer() -> None:
    async def scenario() -> None:
        loop = asyncio.get_running_loop()
        made: list[float] = []
        call_at = loop.call_at

        def counting(when: float, *arguments: Any, **options: Any) -> asyncio.TimerHandle:
            made.append(when)
            return call_at(when, *arguments, **options)

        loop.call_at = counting  # type: ignore[method-assign,assignment]
        deadline = Deadline(60)
        for _ in range(100):
            await deadline.hold(answer())
        assert len(made) == 1
        deadline.close()

    run(scenario())


def test_a_cancellation_from_elsewhere_is_no_timeout() -> None:
    async def scenario() -> None:
        deadline = Deadline(60)
        task = asyncio.ensure_future(deadline.hold(answer_after(60)))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        deadline.close()

    run(scenario())


def test_a_call_that_ends_in_spite_of_its_timeout_counts_and_leaves_nothing_behind() -> None:
    async def stubborn() -> str:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            return "answer"
        raise AssertionError

    async def scenario() -> None:
        deadline = Deadline(0.01)
        assert await deadline.hold(stubborn()) == "answer"
        task = asyncio.current_task()
        assert task is not None
        assert task.cancelling() == 0
        await asyncio.sleep(0)  # a cancellation left over would show here
        deadline.close()

    run(scenario())


def test_a_call_that_answers_its_timeout_with_an_error_leaves_nothing_behind() -> None:
    async def broken() -> str:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            raise ValueError("broken") from None
        raise AssertionError

    async def scenario() -> None:
        deadline = Deadline(0.01)
        with pytest.raises(ValueError, match="broken"):
            await deadline.hold(broken())
        task = asyncio.current_task()
        assert task is not None
        assert task.cancelling() == 0
        deadline.close()

    run(scenario())


def test_a_cancellation_from_elsewhere_outweighs_a_timeout() -> None:
    async def scenario() -> None:
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

    run(scenario())


def test_what_a_call_raises_comes_through() -> None:
    async def broken() -> str:
        raise ValueError("broken")

    async def scenario() -> None:
        deadline = Deadline(60)
        with pytest.raises(ValueError, match="broken"):
            await deadline.hold(broken())
        deadline.close()

    run(scenario())
