"""Follows the nodes' state-event files and stamps each line with the run's time on arrival.

A node's own clock means nothing outside of it; the time of arrival, at most one poll late, lets
its events stand beside the history. The order is the node's own. Lines that are not whole yet wait
for their end; a line that is no state event is counted and reported, never silently dropped.
"""

import threading
from collections.abc import Mapping
from pathlib import Path

import msgspec

from splitbrain.contracts.errors import UNREADABLE, HarnessError
from splitbrain.contracts.names import NodeName
from splitbrain.contracts.state_event import StateEvent
from splitbrain.harness.console.stop import Stop
from splitbrain.harness.run.progress import Progress
from splitbrain.harness.run.run_clock import RunClock
from splitbrain.harness.run.state_watch import StateWatch
from splitbrain.history.run_folder import RunFolder
from splitbrain.history.writer import LineWriter

#: Time between two looks at the files; bounds the error of the time stamps.
POLL_INTERVAL_S = 0.025
_READ_BYTES = 1 << 20


class _NodeFile:
    """One node's raw file, its read position, and the stamped file."""

    def __init__(self, node: NodeName, raw: Path, stamped: Path) -> None:
        self.node, self.raw, self.stamped = node, raw, LineWriter(stamped)
        self.position = 0
        self.partial = b""
        #: Whether the last look left something unread.
        self.is_behind = False

    def new_lines(self) -> list[bytes]:
        """Whole lines that have arrived since the last call."""
        try:
            if self.raw.stat().st_size <= self.position:
                return []
            with self.raw.open("rb") as file:
                file.seek(self.position)
                data = file.read(_READ_BYTES)
        except FileNotFoundError:
            return []
        self.position += len(data)
        self.is_behind = len(data) == _READ_BYTES
        whole, _, self.partial = (self.partial + data).rpartition(b"\n")
        return [line for line in whole.split(b"\n") if line]


class StateEventTailer:
    """Follows all nodes of a run on one thread."""

    def __init__(
        self,
        raw_files: Mapping[NodeName, Path],
        folder: RunFolder,
        clock: RunClock,
        progress: Progress,
        stop: Stop,
        watch: StateWatch | None = None,
    ) -> None:
        """``watch`` is told every event, stamped, as it arrives."""
        self._watch, self._clock, self._progress, self._stop = watch, clock, progress, stop
        self._files = [
            _NodeFile(node, raw, folder.state_events(node)) for node, raw in raw_files.items()
        ]
        self._decoder = msgspec.json.Decoder(StateEvent)
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._run, name="state events", daemon=True)

    def start(self) -> None:
        """Begin to follow."""
        self._thread.start()

    def finish(self) -> None:
        """Read what is left, after the nodes have stopped, and close the files."""
        self._ending.set()
        self._thread.join()
        try:
            while self._poll():
                pass
        finally:
            for file in self._files:
                file.stamped.close()

    def _run(self) -> None:
        try:
            while not self._ending.wait(POLL_INTERVAL_S):
                self._poll()
        except HarnessError as error:
            self._stop.fail(error)

    def _poll(self) -> bool:
        """Take in what has arrived; whether there was anything."""
        arrived = False
        for file in self._files:
            for line in file.new_lines():
                arrived = True
                self._take(file, line)
        if self._watch is not None and not any(file.is_behind for file in self._files):
            self._watch.looked()
        return arrived

    def _take(self, file: _NodeFile, line: bytes) -> None:
        try:
            event = self._decoder.decode(line)
        except UNREADABLE as error:
            problem = f"{error}: {line[:80]!r}"
            next_step = "This is a defect of the system's adapter or of the node; please report it."
            raise HarnessError("read a state event", str(file.raw), problem, next_step) from error
        event = msgspec.structs.replace(event, time=self._clock.now())
        file.stamped.append(event)
        if self._watch is not None:
            self._watch.heard(event)
        if event.kind == "role" and event.role == "leader":
            self._progress.led_by(file.node, event.epoch)
        elif event.kind == "fatal":
            self._progress.say(f"{file.node}: {event.reason}")
