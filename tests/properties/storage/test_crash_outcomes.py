"""After a crash every file is what a real disk may leave, judged by a model that replays naively.

A script is what happened before a job, the job's steps, and what the owner did meanwhile. The model
does as many of the job's steps as had happened, and says of an outcome whether it is legal.
"""

from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from splitbrain.simulation.disk.content import Content
from splitbrain.simulation.disk.file_system import MemoryFileSystem
from splitbrain.simulation.disk.jobs import JobLog, SyncStep
from splitbrain.simulation.disk.names import Names
from tests.properties.storage.disk_model import Model, Operation, assign

ROOT = Path("/")
NAMES = ("a", "b", "t")
EIO = 5


Wish = tuple[str, str, str, int, int]
Script = tuple[list[Wish], list[Wish], list[Wish]]


class Run:
    """A script on the simulated disk; what of it took place, as the model wants it."""

    def __init__(self, script: Script) -> None:
        self.filesystem = MemoryFileSystem(journals=False)
        self.files: dict[str, int] = {}
        self.parts: list[list[Operation]] = []
        self._marks = 0
        for number, wishes in enumerate(script):
            if number == 1:
                self.filesystem.begin_job()
            self.parts.append([done for wish in wishes if (done := self._do(*wish))])
            if number == 1:
                assert self.filesystem.end_job() == len(self.parts[1])

    def model(self, steps: int | None) -> Model:
        """After so many steps of the job, and all that the owner did."""
        before, job, meanwhile = self.parts
        return Model([*before, *job[:steps], *meanwhile])

    def outcome(self) -> dict[str, bytes]:
        names = self.filesystem.list(ROOT)
        return {name: self.filesystem.read(ROOT / name) for name in names}

    def _do(self, action: str, name: str, other: str, position: int, size: int) -> Operation | None:
        filesystem, path = self.filesystem, ROOT / name
        if action == "sync-folder":
            filesystem.sync_folder(ROOT)
            return Operation(action)
        file = self.files.get(name)
        if file is None:
            if action not in {"write", "create"}:
                return None
            filesystem.open(path, create=True)
            file = self._marks = self._marks + 1
            return self._renamed(((name, file),))
        handle = filesystem.open(path)
        match action:
            case "write" if size:
                self._marks += 1
                data = bytes([self._marks % 255 + 1]) * size
                handle.write_at(position, data)
                return Operation(action, file, position, data)
            case "truncate" if position != handle.size():
                handle.truncate(position)
                return Operation(action, file, position)
            case "sync":
                handle.sync()
                return Operation(action, file)
            case "failed-sync":
                filesystem.fail_next("sync", EIO)
                with pytest.raises(OSError, match="EIO"):
                    handle.sync()
                return Operation(action, file)
            case "rename" if name != other:
                filesystem.rename(path, ROOT / other)
                return self._renamed(((name, None), (other, file)))
            case "remove":
                filesystem.remove(path)
                return self._renamed(((name, None),))
            case _:
                return None

    def _renamed(self, change: tuple[tuple[str, int | None], ...]) -> Operation:
        assign(self.files, change)
        return Operation("names", names=change)


def wishes(*actions: str) -> st.SearchStrategy[list[Wish]]:
    wish = st.tuples(
        st.sampled_from(actions),
        st.sampled_from(NAMES),
        st.sampled_from(NAMES),
        st.integers(0, 1200),
        st.integers(0, 1200),
    )
    return st.lists(wish, max_size=10)


CHANGES = ("create", "write", "write", "truncate", "rename", "remove")
SYNCS = ("sync", "sync", "failed-sync", "sync-folder")
scripts = st.tuples(wishes(*CHANGES, *SYNCS), wishes(*CHANGES, *SYNCS), wishes(*CHANGES))


def check_crash(script: Script, steps: int, seed: int) -> None:
    run = Run(script)
    steps = min(steps, len(run.parts[1]))
    run.filesystem.crash(Random(seed), steps=steps)
    assert run.model(steps).allows(run.outcome())


def check_kill(script: Script, steps: int, *, syncs: bool) -> None:
    """``syncs``: whether the next process makes durable what it finds, before the power goes."""
    run = Run(script)
    steps = min(steps, len(run.parts[1]))
    run.filesystem.kill(steps=steps)
    model = run.model(steps)
    assert run.outcome() == model.current()
    if syncs:
        for name in run.filesystem.list(ROOT):
            run.filesystem.open(ROOT / name).sync()
            model.inodes[model.names[name]].sync()
        run.filesystem.sync_folder(ROOT)
        model.durable_names = model.names
    run.filesystem.crash()
    assert run.outcome() == model.durable()


@settings(max_examples=100)
@given(scripts, st.integers(0, 10), st.integers(0, 1000))
def test_every_outcome_of_a_crash_is_legal(script: Script, steps: int, seed: int) -> None:
    check_crash(script, steps, seed)


@settings(max_examples=80)
@given(scripts, st.integers(0, 1000))
def test_a_drawn_crash_keeps_some_prefix_of_the_job(script: Script, seed: int) -> None:
    run = Run(script)
    after = run.filesystem.crash(Random(seed))
    assert after.steps == len(run.parts[1])
    assert run.model(after.steps_kept).allows(run.outcome())


@settings(max_examples=80)
@given(scripts, st.integers(0, 10))
def test_the_worst_crash_leaves_what_was_synced_and_nothing_else(
    script: Script, steps: int
) -> None:
    run = Run(script)
    steps = min(steps, len(run.parts[1]))
    run.filesystem.crash(steps=steps)
    assert run.outcome() == run.model(steps).durable()


@settings(max_examples=80)
@given(scripts, st.integers(0, 10), st.booleans())
def test_a_kill_leaves_what_was_written_in_the_cache_alone(
    script: Script, steps: int, syncs: bool
) -> None:
    check_kill(script, steps, syncs=syncs)


@settings(max_examples=80)
@given(scripts)
def test_a_complete_job_is_durable_as_of_its_syncs(script: Script) -> None:
    run = Run(script)
    # While it is in flight nothing of it counts as durable.
    before = Model(run.parts[0]).durable()
    durable = {name: run.filesystem.durable_content(ROOT / name) for name in NAMES}
    assert durable == {name: before.get(name) for name in NAMES}
    run.filesystem.complete_job()
    model = run.model(None)
    assert run.outcome() == model.current()
    run.filesystem.crash()
    assert run.outcome() == model.durable()


@settings(max_examples=80)
@given(scripts, st.sampled_from(NAMES), st.integers(0, 800), st.integers(0, 800), st.integers(0, 9))
def test_what_the_oracle_calls_durable_survives(
    script: Script, name: str, start: int, size: int, seed: int
) -> None:
    # The owner alone: steps of a job in flight may still take a name away.
    run = Run((script[0] + script[1], [], script[2]))
    path, end = ROOT / name, start + size
    claimed = run.filesystem.durable_equals(path, start, end)
    content = run.filesystem.read(path)[start:end] if run.filesystem.exists(path) else b""
    run.filesystem.crash(Random(seed) if seed else None)
    if claimed:
        assert run.filesystem.read(path)[start:end] == content


REPLACE: list[Wish] = [
    ("create", "t", "t", 0, 0),
    ("write", "t", "t", 0, 700),
    ("sync", "t", "t", 0, 0),
    ("rename", "t", "a", 0, 0),
    ("sync-folder", "t", "t", 0, 0),
]
CREATE: list[Wish] = [("create", "a", "a", 0, 0), ("create", "b", "b", 0, 0)]


def _keeps_every_step(monkeypatch: pytest.MonkeyPatch) -> None:
    interrupt = JobLog.interrupt
    monkeypatch.setattr(JobLog, "interrupt", lambda self, _kept: interrupt(self, 99))


def _cleans_what_it_did_not_sync(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SyncStep, "undo", lambda _self: None)


def _forgets_to_settle(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SyncStep, "settle", lambda _self: None)


def _loses_flushed_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    crash = Content.crash

    def mutant(self: Content, random: Random | None) -> int:
        del self.durable[600:]
        return crash(self, random)

    monkeypatch.setattr(Content, "crash", mutant)


def _undoes_the_oldest_name_first(monkeypatch: pytest.MonkeyPatch) -> None:
    crash = Names.crash

    def mutant(self: Names, random: Random | None) -> int:
        for changes in self.pending.values():
            changes.reverse()
        return crash(self, random)

    monkeypatch.setattr(Names, "crash", mutant)


@pytest.mark.parametrize(
    "plant",
    [
        _keeps_every_step,
        _cleans_what_it_did_not_sync,
        _forgets_to_settle,
        _loses_flushed_bytes,
        _undoes_the_oldest_name_first,
    ],
)
def test_a_disk_that_breaks_its_contract_is_found(
    plant: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(monkeypatch)
    with pytest.raises(AssertionError):
        _check_everything()


def _check_everything() -> None:
    for steps in range(len(REPLACE) + 1):
        check_kill((REPLACE, REPLACE, []), steps, syncs=True)
        for seed in range(40):
            check_crash((REPLACE, REPLACE, []), steps, seed)
            check_crash(([], CREATE, []), min(steps, len(CREATE)), seed)
