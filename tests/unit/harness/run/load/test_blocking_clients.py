"""Clients whose libraries block all have a thread, however few processors there are."""

import asyncio
import threading
from pathlib import Path

import msgspec
import pytest

from splitbrain.contracts.operations import Completion, Operation
from splitbrain.contracts.system import Route
from tests.unit.harness.run.load.load_rig import Rig

#: More than a loop has threads by itself, whatever the machine.
SLOTS = 40
_BARRIERS: dict[int, threading.Barrier] = {}


class Meeting(msgspec.Struct, frozen=True):
    """Opens clients that answer once all of their process block a thread; pickles."""

    clients: int

    def __call__(self, route: Route) -> "MeetingClient":
        return MeetingClient(_BARRIERS.setdefault(self.clients, threading.Barrier(self.clients)))


class MeetingClient:
    def __init__(self, barrier: threading.Barrier) -> None:
        self._barrier = barrier

    async def invoke(self, operation: Operation, timeout_s: float) -> Completion:
        try:
            await asyncio.to_thread(self._barrier.wait, timeout_s)
        except threading.BrokenBarrierError:
            return Completion("fail", error="alone")
        return Completion("ok", operation.value)

    async def close(self) -> None:
        pass


@pytest.mark.parametrize("workers", [0, 2])
def test_all_clients_of_a_process_may_block_at_once(tmp_path: Path, workers: int) -> None:
    met = SLOTS // (workers or 1)
    rig = Rig(
        tmp_path,
        Meeting(met),
        concurrency=SLOTS,
        workers=workers,
        operations_per_slot=1,
        operation_timeout_s=20.0,
        time_limit_s=0.5,
    )
    events = rig.run()
    assert rig.stop.failure is None
    assert [event.type for event in events if event.type != "invoke"] == ["ok"] * SLOTS
