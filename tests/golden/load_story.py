"""A story of the load: the clients' work, and how the system answers each operation. Data alone."""

import math
from collections.abc import Mapping
from typing import Literal

import msgspec

from splitbrain.contracts.names import NodeName
from splitbrain.harness.run.clients import Load

VOTERS = tuple(NodeName(f"n{number}") for number in (1, 2, 3))
OBSERVERS = (NodeName("n4"), NodeName("n5"))
TIMEOUT_S = 1.0
LOAD = Load(concurrency=5, rate=50.0, time_limit_s=0.5, operation_timeout_s=TIMEOUT_S)


class Answer(msgspec.Struct, frozen=True):
    """The system's answer to one operation."""

    type: Literal["ok", "fail", "info", "raises", "never"] = "ok"
    #: Never at a moment of the timetable, so that no two things happen at one moment.
    after_ms: float = 17
    error: str | None = None
    #: Node that says so; None: it does not say.
    node: str | None = None
    #: The true answer arrives so much later.
    late_ms: int | None = None


#: Reader, node that it asks, key and try, from 0, or a part of that from the left.
FinalPlace = tuple[str, str] | tuple[str, str, str] | tuple[str, str, str, int]


class LoadStory(msgspec.Struct, frozen=True, kw_only=True):
    """One load and, where asked for, the final reads after it."""

    name: str
    load: Load = LOAD
    workload: str = "register"
    workload_options: dict[str, str] = {}
    seed: int = 1
    observers: tuple[NodeName, ...] = ()
    #: Those of a worker process; None: all.
    slots: tuple[int, ...] | None = None
    #: Slot and n to the answer; the others are answered in the usual way.
    answers: Mapping[tuple[int, int], Answer] = {}
    #: Slot to the answer of all its other operations.
    slot_answers: Mapping[int, Answer] = {}
    usual: Answer = Answer()
    closing_ms: int = 0
    #: The user stops.
    interrupt_ms: int | None = None
    #: When the timetable begins, other than at once; negative: it has begun already.
    start_ms: int | None = None
    reads_finally: bool = False
    final_answers: Mapping[FinalPlace, Answer] = {}


def load(**changes: object) -> Load:
    """The usual load with some changes."""
    return msgspec.structs.replace(LOAD, **changes)


#: As many as there can be.
UNBOUNDED = math.inf
