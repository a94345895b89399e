"""A load phase without system and runtime, for tests; also a program, to be killed."""

import math
import os
import signal
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from splitbrain.contracts.names import NodeName
from splitbrain.harness.console.stop import Stop
from splitbrain.harness.run.clients import Load, LoadSetup
from splitbrain.harness.run.load_phase import LoadPhase
from splitbrain.harness.run.progress import Progress
from splitbrain.harness.run.run_clock import RunClock
from splitbrain.harness.run.traffic import Traffic
from splitbrain.history.pairing import pair
from splitbrain.history.reader import HistoryReader
from splitbrain.history.records import Event
from splitbrain.history.run_folder import RunFolder
from splitbrain.history.writer import HistoryWriter, LineWriter
from splitbrain.workloads.workload import workload
from tests.unit.harness.run.load.load_clients import Behaviour, Entry, Ledger

NODES = tuple(NodeName(f"n{number}") for number in (1, 2, 3))
LOAD = Load(concurrency=4, rate=math.inf, time_limit_s=60.0, operation_timeout_s=1.0, workers=2)


def _meddle(
    rig: "Rig", act: Callable[["Rig"], object] | None, after: int, _start: int, _end: int
) -> None:
    """The nemesis of these loads: does one thing once the history has so many events."""
    while act is not None and rig.history.count < after and not rig.stop.wait(0.005):
        pass
    if act is not None:
        act(rig)


class Rig:
    """One load phase; the parts are there to be tampered with before ``run``."""

    def __init__(
        self,
        folder: Path,
        behaviour: Any = None,
        *,
        act: "Callable[[Rig], object] | None" = None,
        after: int = 200,
        **load: Any,
    ) -> None:
        self.folder = folder
        self.ledger = Ledger(str(folder / "ledger.jsonl"))
        self.opener = Behaviour(self.ledger) if behaviour is None else behaviour
        self.load = msgspec.structs.replace(LOAD, **load)
        self.clock, self.stop, self.traffic = RunClock(), Stop(), Traffic()
        self.path = folder / "history.jsonl"
        self.history = HistoryWriter(self.path, self.clock.now)
        self.phases = LineWriter(RunFolder(folder).phases)
        self.progress = Progress(self.clock, self.phases, self.traffic)
        self.workload = workload(
            "register",
            seed=7,
            slots=self.load.concurrency,
            readers=frozenset(),
            options={"values": "unique"},
        )
        self.phase = LoadPhase(
            LoadSetup(NODES, self.workload, self.load),
            self.opener,
            carry_out=partial(_meddle, self, act, after),
            history=self.history,
            clock=self.clock,
            progress=self.progress,
            stop=self.stop,
            opener_for_workers=lambda: self.opener,
        )

    def run(self, *, final_reads: bool = False) -> list[Event]:
        try:
            self.phase.run()
            if final_reads:
                self.phase.read_finally()
        finally:
            self.history.close()
            self.phases.close()
        return read_history(self.path)

    def signal_worker(self, number: int, what: signal.Signals) -> None:
        os.kill(self.worker_process_ids()[number], what)

    def worker_process_ids(self) -> list[int]:
        assert self.phase._workers is not None
        return [child.process_id for child in self.phase._workers._children]


def read_history(path: Path) -> list[Event]:
    """All events, after looking that they are what every history must be."""
    events = list(HistoryReader(path))
    assert [event.index for event in events] == list(range(len(events)))
    times = [event.time for event in events]
    assert times == sorted(times)
    pair(events)
    return events


def unrecorded(events: list[Event], entries: list[Entry], clock_start_ns: int) -> list[Entry]:
    """Return what reached the system before the history's last event and is not in the history.

    A history that is a prefix of the truth has none. Values are unique, so an operation is known by
    what it does; reads are left out.
    """
    told = {
        msgspec.json.encode((event.f, event.key, event.value))
        for event in events
        if event.type == "invoke"
    }
    # An event that closes open operations after a death says nothing of its time.
    end = max((event.time for event in events if event.error != "worker-died"), default=0)
    return [
        entry
        for entry in entries
        if entry.f != "read"
        and entry.time - clock_start_ns <= end
        and msgspec.json.encode((entry.f, entry.key, entry.value)) not in told
    ]


def say(*words: object) -> None:
    sys.stdout.write(" ".join(map(str, words)) + "\n")
    sys.stdout.flush()


def main() -> None:
    """Load until killed or interrupted; tells the clock's start and the worker processes."""

    def tell(rig: Rig) -> None:
        say(rig.clock.start_ns, *rig.worker_process_ids())

    rig = Rig(Path(sys.argv[1]), act=tell)
    signal.signal(signal.SIGINT, lambda _number, _frame: rig.stop.interrupt())
    rig.run()
    say(rig.stop.failure)


if __name__ == "__main__":
    main()
