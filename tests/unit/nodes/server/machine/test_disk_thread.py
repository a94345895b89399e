"""The disk thread: in order, completions on the loop, nothing after a failure."""

import asyncio
import threading

from splitbrain.nodes.server.machine.disk_thread import DiskThread


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
