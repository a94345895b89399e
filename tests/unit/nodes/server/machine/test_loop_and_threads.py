"""Services of a node's machine: the disk thread, timers of the loop, connections."""

import asyncio
import resource
import threading

import pytest

from splitbrain.nodes.server.machine.assembly import connections_per_port
from splitbrain.nodes.server.machine.event_loop import DiskThread, LoopTimers
from splitbrain.nodes.transport.doorkeeper import CONNECTIONS_COUNT_MAX


def test_jobs_run_in_order_and_complete_on_the_loop() -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        thread = DiskThread(loop, "disk")
        ran: list[int] = []
        done: asyncio.Queue[tuple[int, Exception | None, int]] = asyncio.Queue()
        for number in range(3):
            thread.submit(
                lambda number=number: ran.append(number),
                lambda failure, number=number: done.put_nowait(
                    (number, failure, threading.get_ident())
                ),
            )
        completions = [await done.get() for _ in range(3)]
        thread.stop()
        assert ran == [0, 1, 2]
        assert completions == [(n, None, threading.get_ident()) for n in range(3)]

    asyncio.run(main())


def test_after_a_failure_no_job_runs() -> None:
    async def main() -> None:
        thread = DiskThread(asyncio.get_running_loop(), "disk")
        ran: list[str] = []
        failed: asyncio.Queue[Exception | None] = asyncio.Queue()

        def fail() -> None:
            raise OSError("no such disk")

        thread.submit(fail, failed.put_nowait)
        thread.submit(lambda: ran.append("later"), failed.put_nowait)
        assert isinstance(await failed.get(), OSError)
        thread.stop()
        assert ran == []
        assert failed.empty()

    asyncio.run(main())


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


@pytest.mark.parametrize(
    ("files_count", "connections_count"),
    [
        (resource.RLIM_INFINITY, CONNECTIONS_COUNT_MAX),
        (1_048_576, CONNECTIONS_COUNT_MAX),
        (1_024, 224),
        (300, 43),
        (64, 8),
    ],
)
def test_all_ports_together_leave_files_for_the_disk(
    monkeypatch: pytest.MonkeyPatch, files_count: int, connections_count: int
) -> None:
    raised: list[tuple[int, int]] = []
    monkeypatch.setattr(resource, "getrlimit", lambda _: (64, files_count))
    monkeypatch.setattr(resource, "setrlimit", lambda _, limits: raised.append(limits))
    assert connections_per_port() == connections_count
    if files_count != resource.RLIM_INFINITY:
        assert raised == [(files_count, files_count)]
