"""Power cuts at every step of every job of the disk thread: what was reported durable is there.

One node's log and quorum state live on the simulated disk as the server drives them: a job runs,
the owner appends meanwhile, the job completes and is reported. Before it completes the disk is
copied and the power of the copy goes after each of the job's steps, unsynced bytes and names lost
or torn at random; then the node must come back with what was reported. Disks that lie show that
the test can fail.
"""

import copy
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

from splitbrain.nodes.quorum.identifiers import DirectoryId, Epoch, NodeId, Offset
from splitbrain.nodes.quorum.persistent import QuorumState
from splitbrain.nodes.storage.errors import StorageError
from splitbrain.nodes.storage.identity import StorageIdentity, format_storage
from splitbrain.nodes.storage.log import LogStore
from splitbrain.nodes.storage.quorum_state import QuorumStateFile
from splitbrain.nodes.wire.batches import encode_payloads, split_batches
from splitbrain.simulation.disk.content import Content
from splitbrain.simulation.disk.file_system import MemoryFileSystem

FOLDER = Path("/node/data")
SEGMENT_BYTES = 1500
JOBS = 14
SEEDS = 3


class Broken(AssertionError):
    """A promise was broken."""


class Life:
    """One node's storage, the copies whose power went, and what it owes."""

    def __init__(self, seed: int, filesystem: MemoryFileSystem) -> None:
        self.random = Random(seed)
        self.filesystem = filesystem
        format_storage(
            filesystem, FOLDER, StorageIdentity("c", NodeId(1), DirectoryId("11" * 16), ())
        )
        self.log, _ = LogStore.open(filesystem, FOLDER, segment_bytes=SEGMENT_BYTES)
        self.quorum_state = QuorumStateFile(filesystem, FOLDER)
        #: Batches of the log as written: (base offset, bytes).
        self.written: list[tuple[int, bytes]] = []
        #: End offset below which nothing may be lost.
        self.promised = 0
        self.states: tuple[QuorumState | None, ...] = (None,)
        self.epoch = 1
        #: Power cuts by kind of job.
        self.cuts: dict[str, int] = {}

    def run(self) -> None:
        """Job after job."""
        for number in range(JOBS):
            self._append()
            draw = self.random.random()
            if draw < 0.2:
                self._write_state(number)
            elif draw < 0.6:
                self._flush()
            elif draw < 0.75:
                self._job("persist-mark", self.log.persist_mark, appends=True)
            else:
                self._truncate()

    def _append(self) -> None:
        if self.random.random() < 0.3:
            self.epoch += 1
        base_offset = self.log.end_offset
        value = bytes([self.random.randrange(256)]) * self.random.choice((1, 200, 700))
        raw = encode_payloads(base_offset, Epoch(self.epoch), 1, [(None, value)])
        self.written.append((base_offset, raw))
        self.log.append_raw(raw, split_batches(raw))

    def _write_state(self, number: int) -> None:
        state = QuorumState(Epoch(number + 1), None, NodeId(2), DirectoryId("22" * 16))
        self.states = (self.states[-1], state)
        self._job("quorum-state", lambda: self.quorum_state.write(state), appends=True)
        self.states = (state,)

    def _flush(self) -> None:
        point = self.log.prepare_flush()
        self._job("flush", lambda: self.log.flush(point), appends=True)
        self.promised = max(self.promised, point.tail.end_offset)

    def _truncate(self) -> None:
        index = self.random.randrange(len(self.written))
        end = self.written[index][0]
        self.promised = min(self.promised, end)
        self._job("truncate", lambda: self.log.truncate(Offset(end)), appends=False)
        del self.written[index:]
        self.promised = end

    def _job(self, name: str, job: Callable[[], object], *, appends: bool) -> None:
        self.filesystem.begin_job()
        job()
        steps = self.filesystem.end_job()
        for meanwhile in range(3):
            for kept in range(steps + 1):
                self._cut(name, kept, meanwhile)
            if appends and meanwhile:
                self._append()
        self.filesystem.complete_job()

    def _cut(self, name: str, steps: int, seed: int) -> None:
        self.cuts[name] = self.cuts.get(name, 0) + 1
        branch = copy.deepcopy(self.filesystem)
        if self.random.random() < 0.2:
            branch.kill(steps=steps)
        else:
            branch.crash(self.random if seed else None, steps=steps)
        try:
            log, shape = LogStore.open(branch, FOLDER, segment_bytes=SEGMENT_BYTES)
            state = QuorumStateFile(branch, FOLDER).read()
        except StorageError as error:
            raise Broken(f"{name}, step {steps}: refused its own files: {error}") from error
        if shape.end_offset < self.promised:
            raise Broken(f"{name}, step {steps}: {shape.end_offset} is below {self.promised}")
        kept = b"".join(raw for base_offset, raw in self.written if base_offset < shape.end_offset)
        found = b""
        position = Offset(0)
        while position < shape.end_offset:
            found += log.read(position, shape.end_offset, 1 << 20)
            position = Offset(split_batches(found)[-1].last_offset + 1)
        if found != kept:
            raise Broken(f"{name}, step {steps}: came back with something else")
        if state not in self.states:
            raise Broken(f"{name}, step {steps}: {state} is none of {self.states}")
        branch.crash()
        if QuorumStateFile(branch, FOLDER).read() != state:
            raise Broken(f"{name}, step {steps}: the state that was read was not durable")


def run_lives(disk: Callable[[], MemoryFileSystem]) -> dict[str, int]:
    cuts: dict[str, int] = {}
    for seed in range(SEEDS):
        life = Life(seed, disk())
        life.run()
        for name, count in life.cuts.items():
            cuts[name] = cuts.get(name, 0) + count
    return cuts


def test_power_cut_at_every_step_of_every_job_keeps_every_promise() -> None:
    cuts = run_lives(lambda: MemoryFileSystem(journals=False))
    assert sorted(cuts) == ["flush", "persist-mark", "quorum-state", "truncate"]
    assert min(cuts.values()) > 10


class LyingDisk(MemoryFileSystem):
    """In jobs its syncs of some paths do nothing."""

    def __init__(self, ending: str) -> None:
        super().__init__(journals=False)
        self._ending = ending

    def sync(self, path: Path, content: Content) -> None:
        if not (self.job_in_flight and str(path).endswith(self._ending)):
            super().sync(path, content)

    def sync_folder(self, folder: Path) -> None:
        if not (self.job_in_flight and str(folder).endswith(self._ending)):
            super().sync_folder(folder)


@pytest.mark.parametrize(
    "ending", [".log", "quorum-state.tmp", "checkpoint.tmp", "durable-length", "metadata-0"]
)
def test_a_disk_that_does_not_sync_breaks_a_promise(ending: str) -> None:
    with pytest.raises(Broken):
        run_lives(lambda: LyingDisk(ending))
