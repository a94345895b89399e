"""Timers of an event loop: no finer than the loop's own, and one clock."""

import asyncio

from splitbrain.nodes.server.machine.loop_timers import LoopTimers


def test_a_deadline_that_has_come_does_not_make_the_loop_spin() -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        earliest = loop.time() + 0.001
        handle = LoopTimers(loop).call_later(0, lambda: None)
        assert handle.when() >= earliest
        handle.cancel()

    asyncio.run(main())


def test_what_is_called_soon_comes_in_the_order_asked_and_in_another_turn() -> None:
    async def main() -> list[str]:
        happened: list[str] = []
        timers = LoopTimers(asyncio.get_running_loop())
        timers.call_soon(lambda: happened.append("first"))
        timers.call_soon(lambda: happened.append("second"))
        happened.append("asked")
        await asyncio.sleep(0)
        return happened

    assert asyncio.run(main()) == ["asked", "first", "second"]


def test_the_monotonic_clock_never_goes_back_and_the_wall_clock_counts_from_1970() -> None:
    async def main() -> None:
        timers = LoopTimers(asyncio.get_running_loop())
        earlier = timers.now()
        assert earlier <= timers.now()
        assert timers.wall_clock_ms() > 1_600_000_000_000

    asyncio.run(main())
