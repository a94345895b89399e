"""A story of the nemesis: its schedule, and the world in which it is carried out. Data alone."""

from collections.abc import Mapping
from typing import Any, Literal

import msgspec

from splitbrain.contracts.fault import US_PER_MS, Awaited, Fault
from splitbrain.contracts.names import NodeName

#: The load begins here, ms since the run's start: the first leader has been elected.
LOAD_START_MS = 960
NODES = tuple(NodeName(f"n{number}") for number in range(1, 6))

#: Something that happens by itself in a story.
#: ``interrupt``: the user wants to stop. ``exit``, ``oom``: a node's process ends, with exit code
#: 1 or killed. ``unled``, ``led``: nobody can lead, somebody can. ``unserved``, ``served``: clients
#: are not acknowledged, are again. ``stuck``: a node's log stays as it is.
What = Literal["interrupt", "exit", "oom", "unled", "led", "unserved", "served", "stuck"]


class Happening(msgspec.Struct, frozen=True):
    """Something that happens by itself, at a time or amid an act."""

    what: What
    #: Since the start of the load; without it amid an act.
    at_ms: int | None = None
    #: Act of the runtime and its number, from 0.
    act: tuple[str, int] | None = None
    #: How long after the middle of that act.
    later_ms: int = 0
    node: NodeName | None = None

    def sentence(self) -> str:
        """A happening and its moment."""
        words = self.what if self.node is None else f"{self.what} of {self.node}"
        if self.act is None:
            return f"{words} at {self.at_ms}"
        later = f" and {self.later_ms} ms" if self.later_ms else ""
        return f"{words} amid {self.act[0]} {self.act[1]}{later}"


class Story(msgspec.Struct, frozen=True, kw_only=True):
    """One schedule and one world."""

    name: str
    schedule: tuple[Fault, ...]
    happenings: tuple[Happening, ...] = ()
    #: Acts of the runtime that do nothing.
    deaf: frozenset[str] = frozenset()
    #: Single calls of acts that do nothing, from 0.
    missed: Mapping[str, tuple[int, ...]] = {}
    #: Acts of the runtime that fail, from this call on, from 0.
    failing: Mapping[str, int] = {}
    #: Acts that raise what nobody expects.
    broken: frozenset[str] = frozenset()
    load_ms: int = 60_000
    #: Whether the nodes tell of themselves at all.
    tells: bool = True
    #: Whether they tell of what is on their disks.
    tells_flushed: bool = True
    #: Exit code of a node that was asked to end.
    asked_code: int = 0
    #: Nodes that do not vote.
    observers: tuple[NodeName, ...] = ()

    def sentence(self) -> str:
        """The world, where it is not the usual one."""
        words = [one.sentence() for one in self.happenings]
        words += [f"{act} does nothing" for act in sorted(self.deaf)]
        words += [
            f"{act} does nothing in call {', '.join(map(str, calls))}"
            for act, calls in sorted(self.missed.items())
        ]
        words += [f"{act} fails from call {n}" for act, n in sorted(self.failing.items())]
        words += [f"{act} is broken" for act in sorted(self.broken)]
        words += ["nodes tell nothing"] * (not self.tells)
        words += ["nodes tell of no disk"] * (not self.tells_flushed)
        words += [f"exit code {self.asked_code} when asked to end"] * bool(self.asked_code)
        words += [f"load of {self.load_ms} ms"] * (self.load_ms != 60_000)
        words += [f"observers {', '.join(self.observers)}"] * bool(self.observers)
        return "; ".join(words) or "the usual world"


def planned(
    kind: str,
    target: str,
    *,
    index: int = 0,
    at_ms: int = 1000,
    lasts_ms: int = 3000,
    draw: int = 7,
    options: dict[str, Any] | None = None,
    when: Awaited | None = None,
) -> Fault:
    """A fault of a story's schedule."""
    return Fault(
        index, kind, target, at_ms * US_PER_MS, lasts_ms * US_PER_MS, draw, options or {}, when
    )


def awaited(
    on: str,
    node: str = "any",
    epoch: int | None = None,
    count: int = 1,
    *,
    delay_ms: int = 0,
    timeout_ms: int = 30_000,
) -> Awaited:
    """A happening that a fault waits for, times in milliseconds, 30 s as plan files have it."""
    return Awaited(on, node, epoch, count, delay_ms * US_PER_MS, timeout_ms * US_PER_MS)
