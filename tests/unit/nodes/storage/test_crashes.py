"""Power cuts at every moment: what was promised is there, what was never written is not.

A random life of a log (append, flush, persist the mark, truncate, restart) runs on the disk in
memory; at some file operation the power goes, and unsynced sectors and names survive at random.
The log that comes back must hold a prefix of what was written, byte for byte, at least as long as
was promised, and the node must not refuse its own files. Mutants show that the test can fail.
"""

import contextlib
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

from splitbrain.nodes.quorum.identifiers import DirectoryId, Epoch, NodeId, Offset
from splitbrain.nodes.quorum.persistent import LogShape
from splitbrain.nodes.storage import flushing
from splitbrain.nodes.storage import log as log_module
from splitbrain.nodes.storage.errors import StorageError
from splitbrain.nodes.storage.flushing import Flusher, FlushPoint, Tail
from splitbrain.nodes.storage.identity import StorageIdentity, format_storage
from splitbrain.nodes.storage.log import LogStore
from splitbrain.nodes.storage.segment import Segment
from splitbrain.nodes.wire.batches import encode_payloads, split_batches
from splitbrain.simulation.disk.file_system import MemoryFileSystem

FOLDER = Path("/node/data")
SEGMENT_BYTES = 1500
LIVES = 3
SEEDS = 250


class PowerCut(Exception):
    pass


class Broken(AssertionError):
    """The log broke a promise."""


class Life:
    """One log, its crashes, and what it owes."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.filesystem = MemoryFileSystem()
        identity = StorageIdentity("c", NodeId(1), DirectoryId("11" * 16), ())
        format_storage(self.filesystem, FOLDER, identity)
        #: Batches of the log as written: (base offset, bytes).
        self.written: list[tuple[int, bytes]] = []
        #: End offset below which nothing may be lost.
        self.promised = 0
        self.epoch = 1

    def run(self) -> None:
        """Live until the power goes, come back, hold the log against its promises; repeat."""
        for _ in range(LIVES):
            self._arm(self.random.randrange(2, 60))
            with contextlib.suppress(PowerCut):
                self._live()
            self.filesystem.fault = None
            # A kill leaves all that was written; a power cut does not.
            if self.random.random() < 0.2:
                self.filesystem.kill()
            else:
                self.filesystem.crash(self.random if self.random.random() < 0.8 else None)
            self._check()

    def _arm(self, operations: int) -> None:
        remaining = operations

        def cut(_action: str, _path: Path) -> None:
            nonlocal remaining
            remaining -= 1
            if remaining <= 0:
                raise PowerCut

        self.filesystem.fault = cut

    def _live(self) -> None:
        log, _ = self._open()
        point = log.prepare_flush()
        while True:
            draw = self.random.random()
            if draw < 0.5:
                self._append(log)
            elif draw < 0.6:
                point = log.prepare_flush()
            elif draw < 0.85:
                # Often a point that later appends have overtaken.
                self.promised = max(self.promised, log.flush(point if draw < 0.7 else None))
            elif draw < 0.93:
                log.persist_mark()
            else:
                self._truncate(log)
                point = log.prepare_flush()

    def _append(self, log: LogStore) -> None:
        if self.random.random() < 0.2:
            self.epoch += 1
        base_offset = log.end_offset
        size = self.random.choice((1, 30, 200, 700))
        value = bytes([self.random.randrange(256)]) * size
        payloads = [(None, value)] * self.random.randrange(1, 4)
        raw = encode_payloads(base_offset, Epoch(self.epoch), 1, payloads)
        self.written.append((base_offset, raw))
        log.append_raw(raw, split_batches(raw))

    def _truncate(self, log: LogStore) -> None:
        if not self.written:
            return
        index = self.random.randrange(len(self.written))
        end = self.written[index][0]
        self.promised = min(self.promised, end)
        log.truncate(Offset(end))
        del self.written[index:]
        self.promised = end

    def _open(self) -> tuple[LogStore, LogShape]:
        try:
            return LogStore.open(self.filesystem, FOLDER, segment_bytes=SEGMENT_BYTES)
        except StorageError as error:
            raise Broken(f"refused its own files: {error}") from error

    def _check(self) -> None:
        log, shape = self._open()
        if shape.end_offset < self.promised:
            raise Broken(f"promised {self.promised}, came back with {shape.end_offset}")
        kept = [entry for entry in self.written if entry[0] < shape.end_offset]
        content = b""
        while raw := log.read(Offset(self._end(content)), shape.end_offset, 1 << 20):
            content += raw
        if content != b"".join(raw for _, raw in kept):
            raise Broken("came back with something else")
        log.close()
        # All that recovery reports is durable.
        self.filesystem.crash()
        again, second = self._open()
        if second != shape:
            raise Broken(f"reported {shape} as durable, then had {second}")
        again.close()
        self.written = kept
        self.promised = shape.end_offset

    def _end(self, content: bytes) -> int:
        size = 0
        for base_offset, raw in self.written:
            if size == len(content):
                return base_offset
            size += len(raw)
        return 1 << 40


def test_power_cut_at_any_moment_keeps_every_promise() -> None:
    for seed in range(SEEDS):
        try:
            Life(seed).run()
        except Broken as error:
            raise AssertionError(f"seed {seed}: {error}") from error


def _first_broken_seed() -> int | None:
    for seed in range(SEEDS):
        try:
            Life(seed).run()
        except Broken:
            return seed
    return None


def _no_segment_sync(monkeypatch: pytest.MonkeyPatch) -> None:
    make_durable = Flusher._make_durable

    def mutant(self: Flusher, point: FlushPoint) -> None:
        make_durable(self, FlushPoint(point.tail, point.epochs, ()))

    monkeypatch.setattr(Flusher, "_make_durable", mutant)


def _newest_segment_only(monkeypatch: pytest.MonkeyPatch) -> None:
    make_durable = Flusher._make_durable

    def mutant(self: Flusher, point: FlushPoint) -> None:
        make_durable(self, FlushPoint(point.tail, point.epochs, point.segments[-1:]))

    monkeypatch.setattr(Flusher, "_make_durable", mutant)


def _no_name_sync(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Flusher, "_sync_names", lambda _self: None)


def _no_checkpoint(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flushing, "write_epochs", lambda *_, **__: None)


def _mark_before_the_sync(monkeypatch: pytest.MonkeyPatch) -> None:
    make_durable = Flusher._make_durable

    def mutant(self: Flusher, point: FlushPoint) -> None:
        self._write_mark(point.tail)
        self.persist_mark()
        make_durable(self, point)

    monkeypatch.setattr(Flusher, "_make_durable", mutant)


def _no_roll_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Flusher, "roll_back", lambda _self, _target: None)


def _roll_back_not_durable(monkeypatch: pytest.MonkeyPatch) -> None:
    def mutant(self: Flusher, target: Tail) -> None:
        self._write_mark(target)
        self.flushed = min(self.flushed, target)

    monkeypatch.setattr(Flusher, "roll_back", mutant)


def _tail_not_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_module, "repair_log", lambda *given: given[-1])


def _index_not_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    def mutant(self: Segment, end_offset: Offset, size_bytes: int) -> None:
        self._recent.clear()
        self.size_bytes = size_bytes
        self.end_offset = end_offset

    monkeypatch.setattr(Segment, "cut", mutant)


@pytest.mark.parametrize(
    "plant",
    [
        _no_segment_sync,
        _newest_segment_only,
        _no_name_sync,
        _no_checkpoint,
        _mark_before_the_sync,
        _no_roll_back,
        _roll_back_not_durable,
        _tail_not_cut,
        _index_not_cut,
    ],
)
def test_planted_bug_breaks_a_promise(
    plant: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(monkeypatch)
    assert _first_broken_seed() is not None
