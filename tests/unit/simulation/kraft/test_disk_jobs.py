import errno
from collections.abc import Callable
from pathlib import Path
from typing import Any

from splitbrain.contracts.scenario import DiskOptions
from splitbrain.simulation.disk.file_system import MemoryFileSystem
from splitbrain.simulation.kraft.disk_jobs import DiskSpeed, SimulatedDiskJobs
from tests.unit.simulation.kraft.unwatched_worlds import SECOND_US, Quorum

FILE = Path("/file")
LATENCY_US = 1_000


class Machine:
    """A disk with its queue, and a process that can be frozen."""

    def __init__(self, **options: Any) -> None:
        steady = {"latency_us_min": LATENCY_US, "latency_us_max": LATENCY_US}
        self.world = Quorum(disk=DiskOptions(**(steady | options))).world
        self.disk = MemoryFileSystem(journals=False)
        self.file = self.disk.open(FILE, create=True)
        self.disk.sync_folder(FILE.parent)
        self.speed = DiskSpeed(self.world)
        self.backlog: list[Callable[[], None]] | None = None
        self.told: list[tuple[int, str, Exception | None]] = []
        self.ran: list[tuple[int, str]] = []
        self.jobs = SimulatedDiskJobs(self.world, self.disk, self.speed, self._enter, "n1")

    def _enter(self, action: Callable[[], None]) -> None:
        if self.backlog is None:
            action()
        else:
            self.backlog.append(action)

    def submit(self, name: str, job: Callable[[], None] | None = None) -> None:
        def run() -> None:
            self.ran.append((self.world.now, name))
            (job or self._write)()

        self.jobs.submit(run, lambda failure: self.told.append((self.world.now, name, failure)))

    def _write(self) -> None:
        self.file.write_at(self.file.size(), b"x")
        self.file.sync()

    def run(self, duration_us: int = SECOND_US) -> None:
        self.world.run(self.world.now + duration_us)

    @property
    def durable(self) -> bytes | None:
        return self.disk.durable_content(FILE)


def test_a_job_runs_in_a_turn_of_its_own_and_is_durable_and_told_when_it_is_done() -> None:
    machine = Machine()
    machine.submit("a")
    assert machine.ran == []
    machine.run(0)
    assert machine.ran == [(0, "a")]
    assert machine.durable == b""
    machine.run(LATENCY_US - 1)
    assert machine.told == []
    machine.run(1)
    assert machine.durable == b"x"
    assert machine.told == [(LATENCY_US, "a", None)]


def test_jobs_run_one_at_a_time_in_the_order_given() -> None:
    machine = Machine()
    for name in "abc":
        machine.submit(name)
    machine.run()
    assert machine.ran == [(0, "a"), (LATENCY_US, "b"), (2 * LATENCY_US, "c")]
    assert [name for _, name, _ in machine.told] == ["a", "b", "c"]


def test_a_job_asked_for_by_a_completion_comes_after_those_that_wait() -> None:
    machine = Machine()
    machine.jobs.submit(lambda: None, lambda _: machine.submit("asked for late"))
    machine.submit("waits")
    machine.run()
    assert [name for _, name in machine.ran] == ["waits", "asked for late"]


def test_after_a_failure_no_later_job_runs_nor_is_told_of() -> None:
    machine = Machine()
    planted = OSError("planted")

    def fail() -> None:
        raise planted

    machine.submit("fails", fail)
    machine.submit("waits")
    machine.run()
    machine.submit("late")
    machine.run()
    assert machine.told == [(LATENCY_US, "fails", planted)]
    assert [name for _, name in machine.ran] == ["fails"]
    assert not machine.disk.job_in_flight


def test_what_a_failing_job_had_synced_before_is_durable() -> None:
    machine = Machine()

    def fail_late() -> None:
        machine.file.write_at(0, b"first")
        machine.file.sync()
        raise OSError("planted")

    machine.submit("fails", fail_late)
    machine.run()
    assert machine.durable == b"first"


def test_stopped_with_a_job_in_flight_nothing_more_happens() -> None:
    machine = Machine()
    machine.submit("in flight")
    machine.submit("waits")
    machine.run(LATENCY_US // 2)
    machine.jobs.stop()
    machine.submit("late")
    machine.run()
    assert machine.told == []
    assert [name for _, name in machine.ran] == ["in flight"]
    assert machine.durable == b"", "the crash settles what is left of it"


def test_finishing_it_does_the_jobs_that_were_given_and_tells_nobody() -> None:
    machine = Machine()
    finished: list[int] = []
    machine.submit("in flight")
    machine.submit("waits")
    machine.run(LATENCY_US // 2)
    machine.jobs.finish(lambda: finished.append(machine.world.now))
    machine.submit("late")
    machine.run()
    assert [name for _, name in machine.ran] == ["in flight", "waits"]
    assert machine.durable == b"xx"
    assert machine.told == []
    assert finished == [2 * LATENCY_US]


def test_with_nothing_to_do_and_after_a_failure_it_has_finished_at_once() -> None:
    machine = Machine()
    finished: list[int] = []
    machine.jobs.finish(lambda: finished.append(machine.world.now))
    assert finished == [0]
    failing = Machine()
    failing.disk.fail_next("sync", errno.EIO)
    failing.submit("fails")
    failing.submit("waits")
    failing.run(LATENCY_US // 2)
    failing.jobs.finish(lambda: finished.append(failing.world.now))
    failing.run()
    assert finished == [0, LATENCY_US]
    assert [name for _, name in failing.ran] == ["fails"]


def test_stopped_before_the_job_s_turn_it_does_not_run() -> None:
    machine = Machine()
    machine.submit("waits")
    machine.jobs.stop()
    machine.run()
    assert machine.ran == []


def test_the_disk_finishes_its_job_while_the_process_is_frozen_and_begins_no_other() -> None:
    machine = Machine()
    machine.submit("a")
    machine.submit("b")
    machine.run(LATENCY_US // 2)
    machine.backlog = []
    machine.run()
    assert machine.durable == b"x"
    assert machine.told == []
    assert [name for _, name in machine.ran] == ["a"]
    backlog, machine.backlog = machine.backlog, None
    for action in backlog:
        action()
    machine.run()
    assert [name for _, name, _ in machine.told] == ["a", "b"]


def test_a_slow_disk_takes_so_many_times_as_long() -> None:
    machine = Machine()
    machine.speed.slow_down(50)
    machine.submit("slow")
    machine.run()
    machine.speed.slow_down(1)
    machine.submit("fast")
    machine.run()
    assert [time for time, _, _ in machine.told] == [50 * LATENCY_US, SECOND_US + LATENCY_US]


def test_a_disk_that_recovers_finishes_its_job_soon() -> None:
    machine = Machine()
    machine.speed.slow_down(1_000_000)
    machine.submit("slow")
    machine.world.run(5 * LATENCY_US)
    machine.speed.slow_down(1)
    machine.run()
    assert [time for time, _, _ in machine.told] == [6 * LATENCY_US]


def test_slow_jobs_come_by_chance() -> None:
    machine = Machine(slow_chance=1.0, slow_us_max=90_000)
    latencies = [machine.speed.latency_us() for _ in range(20)]
    assert all(LATENCY_US <= latency <= 90_000 for latency in latencies)
    assert max(latencies) > LATENCY_US
