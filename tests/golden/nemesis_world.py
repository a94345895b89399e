"""The world of a nemesis' story: five nodes in virtual time, and the runtime that reaches them.

Acts and looks take their time, and all acts are told to the tape, whoever carries the story out.
"""

from collections import Counter
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, Final

import msgspec

from splitbrain.contracts.errors import HarnessError
from splitbrain.contracts.fault import ActualFault, FaultEvent
from splitbrain.contracts.names import NodeName
from splitbrain.contracts.state_event import StateEvent
from splitbrain.contracts.system import LeaderView
from splitbrain.harness.run.down_nodes import DownNodes
from splitbrain.harness.run.traffic import Traffic
from splitbrain.history.course import Phase
from splitbrain.history.records import Event
from tests.golden.baton import US_PER_MS, Baton, BatonStop, BatonWatch
from tests.golden.story import LOAD_START_MS, Happening, Story
from tests.unit.harness.run.armed_world import NODES, ArmedWorld

_TICK_MS: Final = 60
_KILLED: Final = 137

#: How long each act of the runtime takes, ms; its effect comes at the end.
ACT_MS: Final = {
    "cut": 30, "restore": 30, "heal_all": 40, "shape": 40, "unshape": 30, "reset": 25,
    "unreset": 25, "kill": 20, "start": 150, "terminate": 300, "pause": 5, "resume": 5,
    "throttle": 10, "unthrottle": 10, "limit_memory": 15, "unlimit_memory": 15, "power_off": 60,
    "fill": 200, "drain": 100, "stall": 10, "unstall": 10, "fail": 80, "repair": 90, "keep": 50,
    "change": 35, "wipe": 45, "warp": 12, "unwarp": 12, "remove": 40, "add": 60,
}  # fmt: skip
#: Looks of the runtime; each takes a millisecond, unless it waits in vain.
_LOOKS: Final = frozenset(
    {
        "status", "exit_code", "sample", "reachable", "measure", "shaped", "throttled", "memory",
        "state", "read", "offset_ms", "is_member",
    }
)  # fmt: skip
#: Acts that fail where the process has ended; the others do nothing there, or are kept for later.
_NEED_PROCESS: Final = frozenset({"pause"})
_ARMS: Final = frozenset({"links", "processes", "disks", "clocks"})
#: Looks with a time limit, which they take where nothing answers: its place among the arguments.
_PATIENT: Final = {"reachable": 2, "measure": 2, "state": 1}


class Called(msgspec.Struct, frozen=True):
    """An act on the runtime."""

    act: str
    arguments: tuple[Any, ...]


class DownChanged(msgspec.Struct, frozen=True):
    """Nodes may be down from now on, or may no more."""

    may_be: bool
    nodes: tuple[NodeName, ...]


class Said(msgspec.Struct, frozen=True):
    """A line for the display."""

    line: str


class Happened(msgspec.Struct, frozen=True):
    """Something that happened by itself."""

    happening: Happening


Entry = Called | DownChanged | Said | Happened | ActualFault | FaultEvent | Phase


class Tape:
    """All that a story shows, in order, with its time in microseconds."""

    def __init__(self, baton: Baton) -> None:
        self._baton = baton
        self.entries: list[tuple[int, Entry]] = []

    def append(self, entry: Any) -> None:
        self.entries.append((self._baton.now, entry))


class _SwitchedTraffic(Traffic):
    """Clients that can be left without an answer."""

    is_served = True

    def completed(self, event: Event, invoked: int) -> None:
        unanswered = msgspec.structs.replace(event, type="info")
        super().completed(event if self.is_served else unanswered, invoked)


class TimedWorld(ArmedWorld):
    """The nodes, who go on every 60 ms."""

    def __init__(self, story: Story, baton: Baton) -> None:
        super().__init__(story.deaf, story.missed)
        self._baton = baton
        self.traffic = self.clients = _SwitchedTraffic()
        self.watch = BatonWatch(baton)
        self.is_led = True
        self.stuck: set[NodeName] = set()
        self._tells_flushed = story.tells_flushed
        self._asked_code = story.asked_code
        self._codes = dict.fromkeys(NODES, _KILLED)
        self._go_on()

    def _go_on(self) -> None:
        if self._baton.now:
            self.tick()
        self._baton.at(self._baton.now + _TICK_MS * US_PER_MS, self._go_on)

    def _leads(self, node: NodeName) -> bool:
        return self.is_led and super()._leads(node)

    def _tell(self, node: NodeName, kind: Any, **fields: Any) -> None:
        if kind == "append" and node in self.stuck:
            return
        detail = {"flushed": self._ends[node]} if self._tells_flushed else {}
        self._sequence += 1
        self.watch.heard(
            StateEvent(
                *(node, self._sequence, 0, kind, self.epoch),
                time=self.now,
                detail=detail,
                **fields,
            )
        )

    def ask_leader(self, _timeout_s: float) -> LeaderView:
        return LeaderView(self.leader, self.epoch)

    def kill(self, node: NodeName) -> None:
        was = self.states[node]
        super().kill(node)
        if was != "exited":
            self._codes[node] = _KILLED

    def terminate(self, node: NodeName, patience_s: float) -> int | None:
        was = self.states[node]
        if super().terminate(node, patience_s) is None:
            return None
        if was != "exited":
            self._codes[node] = self._asked_code
        return self._codes[node]

    def exit_code(self, node: NodeName) -> int | None:
        return self._codes[node] if self.states[node] == "exited" else None

    def end_by_itself(self, node: NodeName, code: int) -> None:
        self.states[node], self._codes[node] = "exited", code


class ToldRuntime:
    """The runtime of a story: each act takes its time, is told, and may fail as the story says."""

    name = "fake"

    def __init__(self, world: TimedWorld, story: Story, baton: Baton, tape: Tape) -> None:
        self._world = world
        self._story = story
        self._baton = baton
        self._tape = tape
        self._counts: Counter[str] = Counter()
        self._look_us = 0
        #: Does what a happening says.
        self.happens: Callable[[Happening], object] = lambda _happening: None

    def __getattr__(self, name: str) -> Any:
        if name in _ARMS:
            return self
        method = getattr(self._world, name)
        if name in ACT_MS:
            return partial(self._act, name, method)
        return partial(self._looked, name, method) if name in _LOOKS else method

    def _act(self, name: str, method: Callable[..., Any], *arguments: Any) -> Any:
        story, number = self._story, self._counts[name]
        self._counts[name] += 1
        arguments = tuple(_kept(one) for one in arguments)
        self._tape.append(Called(name, arguments))
        half_us = ACT_MS[name] * US_PER_MS // 2
        for one in story.happenings:
            if one.act == (name, number):
                due = self._baton.now + half_us + one.later_ms * US_PER_MS
                self._baton.at(due, partial(self.happens, one))
        self._baton.sleep(2 * half_us)
        if name in story.broken:
            raise ValueError(f"{name} is broken")
        if number >= story.failing.get(name, number + 1):
            raise HarnessError(name, "the runtime", "it would not", "Look at it.")
        node: Any = arguments[0] if arguments else None
        if name in _NEED_PROCESS and self._world.states[node] == "exited":
            raise HarnessError(name, node, "it has ended", "Start it.")
        return method(*arguments)

    def _looked(self, name: str, method: Callable[..., Any], *arguments: Any) -> Any:
        answer = method(*arguments)
        self.takes(US_PER_MS)
        if name in _PATIENT and (
            answer is False or answer == "stalled" or getattr(answer, "arrived", 1) == 0
        ):
            self.takes(round(arguments[_PATIENT[name]] * 1000) * US_PER_MS)
        return answer

    def answers(self, node: NodeName, timeout_s: float) -> bool:
        """Ask a node's own program something."""
        answer = self._world.answers(node, timeout_s)
        self.takes(3 * US_PER_MS if answer else round(timeout_s * 1000) * US_PER_MS)
        return answer

    def takes(self, duration_us: int) -> None:
        """Have the look that is under way take at least so long."""
        self._look_us = max(self._look_us, duration_us)

    def begin_look(self) -> None:
        self._look_us = 0

    def end_look(self) -> None:
        self._baton.sleep(self._look_us)


class ToldDown(DownNodes):
    """Nodes that may be down; each change is told."""

    def __init__(self, tape: Tape) -> None:
        super().__init__()
        self._tape = tape

    def expect(self, nodes: Iterable[NodeName]) -> None:
        self._tell(True, tuple(nodes))
        super().expect(nodes)

    def back(self, nodes: Iterable[NodeName]) -> None:
        there = self.all()
        self._tell(False, tuple(node for node in nodes if node in there))
        super().back(nodes)

    def _tell(self, may_be: bool, nodes: tuple[NodeName, ...]) -> None:
        if nodes:
            self._tape.append(DownChanged(may_be, nodes))


class Scene:
    """A story's world at its beginning, with the load about to begin."""

    def __init__(self, story: Story) -> None:
        self.baton = baton = Baton()
        self.tape = tape = Tape(baton)
        self.world = TimedWorld(story, baton)
        self.runtime = ToldRuntime(self.world, story, baton, tape)
        self.runtime.happens = self._happens
        self.stop = BatonStop(baton)
        self.down = ToldDown(tape)
        for one in story.happenings:
            if one.at_ms is not None:
                due = (LOAD_START_MS + one.at_ms) * US_PER_MS
                baton.at(due, partial(self._happens, one))
        baton.sleep(LOAD_START_MS * US_PER_MS)

    def _happens(self, one: Happening) -> None:
        self.tape.append(Happened(one))
        world, node = self.world, one.node
        match one.what:
            case "interrupt":
                self.stop.interrupt()
            case "exit" | "oom":
                assert node is not None
                world.end_by_itself(node, 1 if one.what == "exit" else _KILLED)
            case "unled" | "led":
                world.is_led = one.what == "led"
                world.leader = world.leader if world.is_led else None
            case "unserved" | "served":
                world.clients.is_served = one.what == "served"
            case "stuck":
                assert node is not None
                world.stuck.add(node)


class VirtualClock:
    """The run's clock, in virtual time."""

    def __init__(self, baton: Baton) -> None:
        self._baton = baton

    def now(self) -> int:
        return self._baton.now * 1000

    def seconds(self) -> float:
        return self._baton.now / 1e6


def _kept(argument: Any) -> Any:
    """An argument that may be read more than once."""
    is_text = isinstance(argument, str)
    return tuple(argument) if isinstance(argument, Iterable) and not is_text else argument
