"""Worker processes of the load: one whole history, whatever becomes of them."""

import contextlib
import os
import resource
import signal
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Generator
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import pytest

from splitbrain.contracts.system import Route
from splitbrain.harness.run.load import worker_processes
from splitbrain.harness.run.load.messages import final_reads_of
from splitbrain.history.pairing import pair
from splitbrain.history.records import Event
from splitbrain.workloads.workload import workload
from tests.awaiting import await_true
from tests.unit.harness.run.load.load_clients import Behaviour, Ledger, LedgerClient, Unloadable
from tests.unit.harness.run.load.load_rig import NODES, Rig, read_history, unrecorded


def streams(events: list[Event], slots: int) -> dict[int, list[tuple[str, str | None, Any]]]:
    """Return the operations of each slot, in order."""
    found: dict[int, list[tuple[str, str | None, Any]]] = defaultdict(list)
    for event in events:
        if event.type == "invoke" and not event.final:
            found[event.process % slots].append((event.f, event.key, event.value))
    return found


def is_complete(events: list[Event]) -> bool:
    return not any(operation.error == "never-completed" for operation in pair(events))


def is_alive(process_id: int) -> bool:
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        state = Path(f"/proc/{process_id}/stat").read_text().rpartition(")")[2].split()[0]
        return state != "Z"
    return False


def await_gone(process_ids: list[int]) -> None:
    await_true(lambda: not any(map(is_alive, process_ids)))


def test_several_processes_do_what_one_does_and_make_one_history(tmp_path: Path) -> None:
    for name in ("one", "several"):
        (tmp_path / name).mkdir()
    alone = Rig(tmp_path / "one", workers=0, operations_per_slot=300).run()
    rig = Rig(tmp_path / "several", operations_per_slot=300)
    together = rig.run(final_reads=True)
    assert rig.stop.failure is None
    assert is_complete(together)
    assert streams(together, 4) == streams(alone, 4)
    counts = rig.traffic.counts()
    final_reads = sum(event.final and event.type == "ok" for event in together)
    assert counts.ok == 4 * 300 + final_reads
    # Every key that any of them touched is read in the end, by processes that are new.
    keys = {event.key for event in together}
    assert {event.key for event in together if event.final} == keys
    loaded = {event.process for event in together if not event.final}
    assert not loaded & {event.process for event in together if event.final}


def test_each_node_is_seen_to_acknowledge(tmp_path: Path) -> None:
    rig = Rig(tmp_path, operations_per_slot=50)
    events = rig.run()
    newest = max(event.time for event in events if event.type == "invoke")
    assert rig.traffic.acknowledged_since(newest - 1)
    assert not rig.traffic.acknowledged_since(newest)
    assert set(rig.traffic.counts().ok_by_node) == {"n1", "n2"}


def test_after_info_a_slot_goes_on_as_a_process_that_nobody_was(tmp_path: Path) -> None:
    behaviour = Behaviour(info_routes=("leader", "pinned"))
    events = Rig(tmp_path, behaviour, operations_per_slot=40).run()
    processes = [event.process for event in events if event.type == "invoke"]
    assert len(set(processes)) == len(processes) == 160
    assert sorted(processes) == list(range(160))


def test_unknown_outcomes_in_one_process_make_the_others_give_the_key_up(tmp_path: Path) -> None:
    # Slots 0 and 1 are one process' and 2 and 3 the other's; only the first has any info.
    behaviour = InfoInOneProcess(Ledger(str(tmp_path / "first")))
    # Long enough for the other process to begin, and to hear of it, on a machine with no time.
    events = Rig(tmp_path, behaviour, operations_per_slot=800, rate=400.0).run()
    infos = {event.process % 4 for event in events if event.type == "info"}
    assert infos
    assert infos <= {0, 1} or infos <= {2, 3}
    others = {0, 1, 2, 3} - {
        slot for pair_ in ((0, 1), (2, 3)) if infos & {*pair_} for slot in pair_
    }
    given_up = {event.key for event in events if event.process % 4 in others and event.key}
    assert any(key.count("-") == 2 for key in given_up), given_up


class InfoInOneProcess(Behaviour, frozen=True):
    """The process that opens a client first answers ``info`` to everything."""

    def __call__(self, route: Any) -> Any:
        assert self.ledger is not None
        with contextlib.suppress(FileExistsError):
            descriptor = os.open(self.ledger.path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
            os.write(descriptor, str(os.getpid()).encode())
            os.close(descriptor)
        is_first = Path(self.ledger.path).read_text() == str(os.getpid())
        kinds = ("leader", "pinned") if is_first else ()
        return Behaviour(info_routes=kinds, delay_s=0.002)(route)


def test_a_late_process_holds_the_others_up_and_nothing_gets_out_of_order(tmp_path: Path) -> None:
    # Slots 0 and 1 ask n1, 2 and 3 ask n2.
    behaviour = Behaviour(blocking_s=0.05, blocking_nodes=("n2",))
    rig = Rig(tmp_path, behaviour, operations_per_slot=8)
    events = rig.run()
    assert is_complete(events)
    assert len(events) == 2 * 4 * 8


def test_stopped_in_the_middle_no_operation_is_left_open(tmp_path: Path) -> None:
    rig = Rig(
        tmp_path,
        Behaviour(delay_s=0.02),
        act=lambda rig: rig.stop.interrupt(),
        after=20,
        concurrency=10,
    )
    events = rig.run()
    assert rig.stop.failure is None
    assert 20 <= len(events) < 2_000
    assert is_complete(events)


def test_a_call_that_never_returns_is_ended_in_a_worker_process_too(tmp_path: Path) -> None:
    rig = Rig(tmp_path, Behaviour(hangs=True), operations_per_slot=1, operation_timeout_s=0.05)
    events = rig.run()
    assert {event.error for event in events if event.type != "invoke"} == {"client-overdue"}


# --- death ------------------------------------------------------------------------------------


def test_a_killed_worker_process_leaves_a_prefix_and_fails_the_run(tmp_path: Path) -> None:
    rig = Rig(tmp_path, act=lambda rig: rig.signal_worker(0, signal.SIGKILL))
    events = rig.run()
    assert str(rig.stop.failure) == (
        "could not load the system (worker process 1 of 2 for the clients): it was ended by "
        "signal 9. The history ends where it was last heard of, and can be judged up to there; "
        "run again."
    )
    assert len(events) >= 200
    assert unrecorded(events, rig.ledger.entries(), rig.clock.start_ns) == []
    assert is_complete(events)
    # Later events are known to the system alone.
    assert len(rig.ledger.entries()) > sum(event.type == "invoke" for event in events)


def test_operations_that_were_open_at_the_cut_become_info(tmp_path: Path) -> None:
    rig = Rig(
        tmp_path,
        # Every slot has one operation under way at the kill, however slow the machine is.
        Behaviour(delay_s=0.3),
        act=lambda rig: rig.signal_worker(0, signal.SIGKILL),
        after=4,
    )
    events = rig.run()
    assert "ended by signal 9" in str(rig.stop.failure)
    ended = [event for event in events if event.error == "worker-died"]
    assert {event.type for event in ended} == {"info"}
    assert is_complete(events)


def test_a_history_that_goes_on_after_a_death_is_caught(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The mutant: a dead process counts as one that has ended."""

    def forget(self: Any, number: int) -> None:
        self.add(number, worker_processes.ENDED, (), ())

    monkeypatch.setattr(worker_processes.Merge, "abandon", forget)
    rig = Rig(tmp_path, act=kill_in_the_middle_of_a_write, after=0)
    rig.opener = Behaviour(rig.ledger, blocking_s=1.0, blocking_nodes=("n1",))
    events = rig.run()
    assert unrecorded(events, rig.ledger.entries(), rig.clock.start_ns) != []


def kill_in_the_middle_of_a_write(rig: Rig) -> None:
    """Kill the worker process of n1 while it cannot tell of a write, and the other one works on.

    Killed at any moment, it may just have told of everything, and then nothing is missing.
    """
    victim = rig.worker_process_ids()[0]
    while not rig.stop.wait(0.005):
        entries = rig.ledger.entries()
        own = [entry for entry in entries if entry.process_id == victim]
        if not own or own[-1].f == "read" or time.monotonic_ns() - own[-1].time > 300_000_000:
            continue
        if any(entry.time > own[-1].time for entry in entries):
            os.kill(victim, signal.SIGKILL)
            return


def start_rig(folder: Path) -> "subprocess.Popen[str]":
    paths = os.pathsep.join(entry or str(Path.cwd()) for entry in sys.path)
    return subprocess.Popen(
        [sys.executable, "-m", "tests.unit.harness.run.load.load_rig", str(folder)],
        stdout=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parents[5],
        env={**os.environ, "PYTHONPATH": paths},
        start_new_session=True,
    )


@contextlib.contextmanager
def rig_process(folder: Path) -> Generator[tuple["subprocess.Popen[str]", int, list[int]]]:
    """A run in a process of its own: it, its clock's start, its worker processes."""
    with start_rig(folder) as child:
        try:
            assert child.stdout is not None
            start_ns, *workers = map(int, child.stdout.readline().split())
            assert len(workers) == 2
            yield child, start_ns, workers
        finally:
            child.kill()
    await_gone(workers)


def test_a_killed_run_takes_its_worker_processes_along_and_leaves_a_prefix(tmp_path: Path) -> None:
    with rig_process(tmp_path) as (child, start_ns, workers):
        child.kill()
        child.wait()
        await_gone(workers)
        # A torn last line is tolerated; whatever is before it is whole.
        events = read_history(tmp_path / "history.jsonl")
        entries = Ledger(str(tmp_path / "ledger.jsonl")).entries()
        assert len(events) >= 200
        assert unrecorded(events, entries, start_ns) == []


def test_ctrl_c_reaches_the_run_alone_which_ends_in_order(tmp_path: Path) -> None:
    with rig_process(tmp_path) as (child, _, _):
        os.killpg(child.pid, signal.SIGINT)
        assert child.stdout is not None
        assert child.stdout.read() == "None\n"
        assert child.wait() == 0
        assert is_complete(read_history(tmp_path / "history.jsonl"))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(10))
def test_whoever_is_killed_whenever_leaves_a_prefix(tmp_path: Path, seed: int) -> None:
    random = Random(seed)
    after = random.randrange(1, 20_000)
    delay_s = random.choice([0.0, 0.001])
    victim = random.randrange(3)

    if victim < 2:
        behaviour = Behaviour(Ledger(str(tmp_path / "ledger.jsonl")), delay_s=delay_s)
        kill = partial(Rig.signal_worker, number=victim, what=signal.SIGKILL)
        rig = Rig(tmp_path, behaviour, act=kill, after=after, concurrency=8)
        events, start_ns = rig.run(), rig.clock.start_ns
        assert is_complete(events)
    else:
        with rig_process(tmp_path) as (child, start_ns, _):
            path = tmp_path / "history.jsonl"
            await_true(lambda: path.stat().st_size > after * 100)
            child.kill()
            child.wait()
        events = read_history(path)
    entries = Ledger(str(tmp_path / "ledger.jsonl")).entries()
    assert unrecorded(events, entries, start_ns) == []


# --- what else can go wrong -------------------------------------------------------------------


def test_a_silent_worker_process_is_killed_and_told_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker_processes, "SILENCE_MAX_S", 0.6)
    rig = Rig(
        tmp_path, Behaviour(delay_s=0.005), act=lambda rig: rig.signal_worker(1, signal.SIGSTOP)
    )
    events = rig.run()
    assert "worker process 2 of 2 for the clients): it said nothing for 0.6 s" in str(
        rig.stop.failure
    )
    assert is_complete(events)


def test_who_is_far_ahead_is_not_listened_to_until_the_others_follow(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker_processes, "BACKLOG_BYTES_MAX", 10_000)
    held: list[int] = []

    def pause(rig: Rig) -> None:
        assert rig.phase._workers is not None
        rig.signal_worker(1, signal.SIGSTOP)
        other = rig.phase._workers._children[0]
        await_true(lambda: other.is_ahead)
        held.append(rig.phase._workers._merge.held_bytes(0))
        rig.signal_worker(1, signal.SIGCONT)

    rig = Rig(tmp_path, Behaviour(), act=pause, after=1_000, operations_per_slot=2_000)
    events = rig.run()
    assert rig.stop.failure is None
    assert is_complete(events)
    assert len(events) == 2 * 4 * 2_000
    # Bytes that one read brings on top of the limit.
    assert held[0] < 10_000 + 2 * (1 << 20)


def test_a_disk_without_room_ends_the_load_with_a_sentence_and_whole_lines(tmp_path: Path) -> None:
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    rig = Rig(tmp_path, Behaviour())
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, before[1]))
    try:
        events = rig.run()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert "write to the file" in str(rig.stop.failure)
    assert "history.jsonl): File too large" in str(rig.stop.failure)
    assert len(events) > 100
    assert rig.path.read_bytes().endswith(b"}\n")


def test_a_client_that_raises_in_a_worker_process_is_a_defect_of_the_adapter(
    tmp_path: Path,
) -> None:
    rig = Rig(tmp_path, Behaviour(raises_at=20))
    events = rig.run()
    assert "ValueError: a defect of the adapter" in str(rig.stop.failure)
    assert is_complete(events)
    assert "client-crashed" in {event.error for event in events}


def test_a_worker_process_that_cannot_start_is_told_with_its_reason(tmp_path: Path) -> None:
    rig = Rig(tmp_path, Unloadable())
    assert rig.run() == []
    assert "ended with code 1 (RuntimeError: this adapter cannot be loaded here)" in str(
        rig.stop.failure
    )


def test_what_cannot_be_sent_to_a_process_is_refused_in_a_sentence(tmp_path: Path) -> None:
    rig = Rig(tmp_path, lambda _: LedgerClient(Behaviour(), Route("leader", NODES[0])))
    assert rig.run() == []
    assert "what opens them cannot be sent to another process" in str(rig.stop.failure)
    assert "Choose a lower --rate" in str(rig.stop.failure)


def test_final_reads_name_each_key_once(tmp_path: Path) -> None:
    rig = Rig(tmp_path, workers=0, operations_per_slot=1)
    rig.run()
    reads = rig.workload.final_reads()
    assert final_reads_of(rig.workload, [reads, reads[:1]]) == list(reads)


def test_final_reads_that_are_transactions_are_told_apart_by_their_parts() -> None:
    made = workload("list-append", seed=1, slots=2, readers=frozenset(), options={})
    for n in range(60):
        made.operation(n % 2, n)
    reads = made.final_reads()
    assert len(reads) > 2
    assert final_reads_of(made, [reads, reads[:1]]) == list(reads)
