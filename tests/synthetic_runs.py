"""Run folders made by arithmetic, for tests of what reads them: the judge, the report, analyses.

Three nodes, registers with compare-and-set, a partition, a pause and a kill, all in forty invented
seconds; the same seed makes the same bytes. ``flaw`` plants what a checker must find.
"""

import json
import random
from collections import Counter
from pathlib import Path
from typing import Any, Literal

import msgspec

from splitbrain.contracts.fault import Fault, FaultEvent, Link
from splitbrain.contracts.names import NodeName, RunId
from splitbrain.contracts.state_event import StateEvent
from splitbrain.harness.folder.manifest import MANIFEST_NAME, write_manifest
from splitbrain.history.course import came_to_its_end
from splitbrain.history.plan import encode_plan, sub_seeds
from splitbrain.history.records import Event
from splitbrain.history.run_folder import RunFolder
from tests.plans import plan_with

Flaw = Literal["stale-read", "lost-commit", "dead", "traceback"]

MS = 1_000_000
NODES = tuple(NodeName(name) for name in ("n1", "n2", "n3"))
#: Hostile text, as a broken or a malicious system under test might send it.
HOSTILE = (
    '</script><script>window.hacked=1</script><img src=x onerror="window.hacked=1">\u2028\x1b[31m'
)

#: (from ms, epoch, leader): who acknowledges writes.
_LEADERS = ((0, 1, "n1"), (5_900, 2, "n2"), (22_800, 3, "n3"))
#: Nobody acknowledges anything here.
_OUTAGES_MS = ((5_000, 5_900), (22_000, 22_800))
_LOAD_MS = 32_000
_STALE_AT_MS = 8_000


class SyntheticRun:
    """One run folder in the making."""

    def __init__(
        self,
        root: Path,
        *,
        seed: int = 7,
        flaw: Flaw | None = None,
        hostile: bool = False,
        processes: int = 6,
        operations_per_second: int = 120,
        duration_factor: int = 1,
    ) -> None:
        self.folder = RunFolder(root)
        self.random = random.Random(seed)
        self.seed = seed
        self.flaw = flaw
        self.hostile = hostile
        self.processes = processes
        self.gap_ms = processes * 1000 / operations_per_second
        self.load_ms = _LOAD_MS * duration_factor
        self.lines: list[tuple[float, int, dict[str, Any]]] = []
        self.committed: list[dict[str, Any]] = []
        self.registers: dict[str, tuple[Any, float, Any]] = {}
        self.next_value = 0
        self.lied = False

    def write(self) -> Path:
        """Make the folder; returns its path."""
        for node in NODES:
            self.folder.node(node).mkdir(parents=True)
        self._write_plan()
        self._write_faults()
        self._write_state_events()
        self._write_history()
        self._write_logs()
        self._write_phases()
        seal(self.folder)
        return self.folder.root

    def _write_plan(self) -> None:
        plan = plan_with(
            run_id=RunId(self.folder.root.name),
            bugs=("stale-leader-reads",) if self.flaw == "stale-read" else (),
            declares_state_events=True,
            nodes=NODES,
            checkers=("linearizability:cas-register", "split-brain", "lost-commits"),
            nemesis="partition,pause,kill",
            planned_faults=3,
            seed=self.seed,
            sub_seeds=sub_seeds(self.seed),
            time_limit_s=self.load_ms / 1000,
            concurrency=self.processes,
        )
        self.folder.plan.write_bytes(encode_plan(plan))

    def _write_faults(self) -> None:
        links = [Link(NODES[0], other) for other in NODES[1:]]
        links += [Link(other, NODES[0]) for other in NODES[1:]]
        faults = (
            (0, "partition", "leader", ("n1",), "n1", 5_000, 10_000, tuple(links)),
            (1, "pause", "follower", ("n3",), "n2", 14_000, 18_000, ()),
            (2, "kill", "leader", ("n2",), "n2", 22_000, 26_000, ()),
        )
        evidence = {
            "partition": "4 links cut after 212 ms",
            "pause": "n3 is paused and answered nothing after 260 ms",
            "kill": "n2 is exited after 41 ms",
        }
        scheduled: list[bytes] = []
        events: list[FaultEvent] = []
        for index, kind, target, nodes, leader, start, end, cut in faults:
            planned = Fault(index, kind, target, start * 1000, (end - start) * 1000, 5)
            scheduled.append(msgspec.json.encode(planned))
            story: list[tuple[int, Any, str | None]] = [
                (start, "invoked", None),
                (start + 212, "verified", evidence[kind] + (HOSTILE if self.hostile else "")),
                (end, "healing", None),
                (end + 120, "removed", "all as before after 120 ms"),
                (end + 150, "resumed", "an operation acknowledged after 30 ms"),
            ]
            events += [
                FaultEvent(
                    time=at * MS,
                    index=index,
                    kind=kind,
                    phase=phase,
                    target=target,
                    nodes=tuple(NodeName(node) for node in nodes),
                    links=cut,
                    leader=NodeName(leader),
                    evidence=words,
                )
                for at, phase, words in story
            ]
        events.sort(key=lambda event: event.time)
        if self.flaw == "dead":
            events = [event for event in events if event.time < 15_000 * MS]
        self.folder.schedule.write_bytes(b"\n".join(scheduled) + b"\n")
        self.folder.faults.write_bytes(b"".join(msgspec.json.encode(e) + b"\n" for e in events))

    def _write_state_events(self) -> None:
        story = {
            # (ms, incarnation, kind, epoch, role, leader)
            "n1": (
                (50, 0, "started", 0, None, None),
                (200, 0, "role", 1, "leader", 1),
                (7_400, 0, "role", 1, "unattached", None),
                (10_200, 0, "role", 2, "follower", 2),
                (22_850, 0, "role", 3, "follower", 3),
            ),
            "n2": (
                (55, 0, "started", 0, None, None),
                (210, 0, "role", 1, "follower", 1),
                (5_600, 0, "role", 2, "candidate", None),
                (5_880, 0, "role", 2, "leader", 2),
                (26_060, 1, "started", 2, None, None),
                (26_300, 1, "role", 3, "follower", 3),
            ),
            "n3": (
                (52, 0, "started", 0, None, None),
                (210, 0, "role", 1, "follower", 1),
                (5_890, 0, "role", 2, "follower", 2),
                (22_500, 0, "role", 3, "candidate", None),
                (22_790, 0, "role", 3, "leader", 3),
            ),
        }
        for node in NODES:
            numbers = Counter[int]()
            events = [
                StateEvent(
                    node=node,
                    sequence=_next(numbers, incarnation),
                    incarnation=incarnation,
                    kind=kind,
                    epoch=epoch,
                    role=role,
                    leader=leader,
                    time=at * MS,
                )
                for at, incarnation, kind, epoch, role, leader in story[node]
                if not (self.flaw == "dead" and at > 15_000)
            ]
            data = b"".join(msgspec.json.encode(event) + b"\n" for event in events)
            self.folder.state_events(node).write_bytes(data)
            log = '{"level": "info", "event": "listening"}\n'
            if self.flaw == "traceback" and node == "n3":
                log += "Traceback (most recent call last):\n"
                log += (
                    '  File "log.py", line 7, in append\n    raise ValueError("no such offset")\n'
                )
                log += "ValueError: no such offset\n"
            (self.folder.node(node) / "container.log").write_text(log)

    def _write_history(self) -> None:
        clocks = [self.random.uniform(0, self.gap_ms) + 300 for _ in range(self.processes)]
        names = list(range(self.processes))
        fresh = self.processes
        while min(clocks) < self.load_ms:
            slot = clocks.index(min(clocks))
            start = clocks[slot]
            outcome, duration = self._operate(start, names[slot])
            if outcome == "info":
                names[slot], fresh = fresh, fresh + 1
            clocks[slot] = start + duration + self.random.expovariate(1 / self.gap_ms)
        for number, node in enumerate(NODES):
            at = self.load_ms + 1_000 + number * 20
            for key, (value, _, _) in sorted(self.registers.items()):
                self._record(at, fresh, "invoke", "read", key, None, node=node, final=True)
                at += 2
                self._record(at, fresh, "ok", "read", key, value, node=node, final=True)
                at += 1
            fresh += 1
        self.lines.sort(key=lambda line: line[:2])
        encoded: list[bytes] = []
        for index, (at, _, fields) in enumerate(self.lines):
            if self.flaw == "dead" and at > 15_000:
                encoded.append(b'{"index": 99999, "time": 150000')
                break
            event = Event(index=index, time=int(at * MS), **fields)
            encoded.append(msgspec.json.encode(event) + b"\n")
        self.folder.history.write_bytes(b"".join(encoded))

    def _operate(self, start: float, process: int) -> tuple[str, float]:
        generation = int(start // 10_000)
        key = f"r{self.random.randrange(4)}-{generation}" + (HOSTILE if self.hostile else "")
        kind = self.random.choice(("read", "read", "write", "write", "cas"))
        outage = next((span for span in _OUTAGES_MS if span[0] - 5 <= start < span[1]), None)
        current, written_at, before = self.registers.get(key, (None, 0.0, None))
        argument = self._argument(kind, current)
        node = NODES[process % 3]
        self._record(start, process, "invoke", kind, key, argument, node=node)
        if outage is not None:
            outcome = "fail" if kind == "read" else "info"
            error = "timeout" + (HOSTILE if self.hostile else "")
            # An unknown outcome: half of them happened, as far as later reads can tell.
            self._record(start + 1000, process, outcome, kind, key, argument, error=error)
            return outcome, 1000.0
        duration = 0.5 + self.random.expovariate(1 / 2.0) + (self.random.random() < 0.01) * 40
        end = start + duration
        leader = next(leader for leader in reversed(_LEADERS) if leader[0] <= start)
        result, changed = self._apply(kind, argument, current)
        if (
            self.flaw == "stale-read"
            and not self.lied
            and kind == "read"
            and _STALE_AT_MS < start < _STALE_AT_MS + 2_000
            and current is not None
            and start - written_at > 30
        ):
            result, node, self.lied = before, "n1", True
        position = None
        if changed:
            position = (leader[1], len(self.committed))
            value = argument[1] if kind == "cas" else argument
            self.registers[key] = (value, end, current)
            self.committed.append({"epoch": leader[1], "f": kind, "key": key, "value": argument})
        self._record(end, process, "ok", kind, key, result, node=node, position=position)
        return "ok", duration

    def _argument(self, kind: str, current: Any) -> Any:
        if kind == "read":
            return None
        self.next_value += 1
        if kind == "write":
            return self.next_value
        guess = current if self.random.random() < 0.7 else -1
        return [guess, self.next_value]

    @staticmethod
    def _apply(kind: str, argument: Any, current: Any) -> tuple[Any, bool]:
        if kind == "read":
            return current, False
        if kind == "write":
            return argument, True
        succeeded = argument[0] == current
        return [*argument, succeeded], succeeded

    def _record(
        self, at: float, process: int, type_: str, f: str, key: str, value: Any, **more: Any
    ) -> None:
        fields = {"process": process, "type": type_, "f": f, "key": key, "value": value, **more}
        self.lines.append((at, len(self.lines), fields))

    def _write_phases(self) -> None:
        end_ms = self.load_ms
        course = (
            *(("deploying", 0), ("deployed", 40), ("ready", 280), ("load-started", 290)),
            *(("load-ended", end_ms + 100), ("healed", end_ms + 100)),
            *(("converged", end_ms + 900), ("final-reads-ended", end_ms + 2_000)),
            *(("stopped", end_ms + 2_100), ("collected", end_ms + 2_500)),
            ("torn-down", end_ms + 3_000),
        )
        events = len(self.lines)
        lines = [
            json.dumps({"time": at * MS, "phase": name} | ({"events": events} if at > 290 else {}))
            for name, at in course
            if not (self.flaw == "dead" and at > 15_000)
        ]
        (self.folder.root / "phases.jsonl").write_text("\n".join(lines) + "\n")

    def _write_logs(self) -> None:
        if self.flaw == "dead":
            return
        lost = len(self.committed) // 3 if self.flaw == "lost-commit" else -1
        for node in NODES:
            header = {"node": node, "start_offset": 0, "end_offset": len(self.committed)}
            lines = [json.dumps(header)]
            for offset, record in enumerate(self.committed):
                shown = (
                    {**record, "f": None, "key": None, "value": None} if offset == lost else record
                )
                lines.append(json.dumps({"offset": offset, **shown, "digest": f"d{offset}"}))
            self.folder.committed_log(node).write_text("\n".join(lines) + "\n")


def seal(folder: RunFolder) -> None:
    """As the run itself would, had it left the folder as it is: after its end, and no sooner."""
    if came_to_its_end(folder):
        write_manifest(folder)
    else:
        (folder.root / MANIFEST_NAME).unlink(missing_ok=True)


def _next(numbers: Counter[int], incarnation: int) -> int:
    numbers[incarnation] += 1
    return numbers[incarnation] - 1


def write_run(root: Path, **options: Any) -> Path:
    """Make a run folder at ``root``; options as of ``SyntheticRun``."""
    return SyntheticRun(root, **options).write()
