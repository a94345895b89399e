"""The stories of the load: each outcome at each moment, and each way in which a load ends."""

from typing import Final, Literal

from tests.golden.load_story import (
    OBSERVERS,
    UNBOUNDED,
    Answer,
    LoadStory,
    load,
)

_NEVER: Final = Answer("never")
_REFUSED: Final = Answer("fail", 3, "not-leader", node="n2")
#: Of each slot, so that no two of them ever end an operation at one moment.
_UNEVEN_MS: Final = (7.01, 11.03, 13.07, 17.13, 19.17)
_TWO_SLOTS: Final = load(concurrency=2, rate=20.0, time_limit_s=0.43)


def _one(name: str, slot: int, n: int, answer: Answer, **more: object) -> LoadStory:
    """A story of two slots; one operation is answered in another way than the usual one."""
    changes = {"load": _TWO_SLOTS, **more}
    return LoadStory(name=name, answers={(slot, n): answer}, **changes)  # type: ignore[arg-type]


def _uneven(type_: Literal["ok", "info"]) -> dict[int, Answer]:
    error = "lost" if type_ == "info" else None
    return {slot: Answer(type_, ms, error) for slot, ms in enumerate(_UNEVEN_MS)}


#: Fates of one operation; slot 0 follows the leader, slot 1 is pinned. With seed 1 the
#: operation (1, 1) writes, (0, 2) and (1, 2) read.
_OUTCOMES: Final = (
    _one("ok, at once", 1, 1, Answer(after_ms=0)),
    _one("ok, later than the timeout", 1, 1, Answer(after_ms=1400)),
    _one("ok, right before the deadline", 1, 1, Answer(after_ms=1499)),
    _one("ok, right after the deadline", 1, 1, Answer(after_ms=1501)),
    _one("ok, by another node than was asked", 1, 1, Answer(node="n3")),
    _one("fail, at once", 1, 1, Answer("fail", 0, "not-leader")),
    _one("fail, quick", 1, 1, Answer("fail", 30, "not-leader", node="n3")),
    _one("fail, right before nine tenths of the timeout", 1, 1, Answer("fail", 899, "slow")),
    _one("fail, at nine tenths of the timeout", 1, 1, Answer("fail", 900, "slow")),
    _one("fail, a read that timed out", 0, 2, Answer("fail", 1000, "timeout")),
    _one("info, quick", 1, 1, Answer("info", 5, "connection-lost")),
    _one("info, at the timeout", 1, 1, Answer("info", 1000, "timeout", node="n1")),
    _one("info, of a read", 1, 2, Answer("info", 1000, "timeout")),
    _one("info, quick, of a read", 1, 2, Answer("info", 5, "connection-lost")),
    _one("info, and the true answer comes late", 1, 1, Answer("info", 5, "lost", late_ms=60)),
    _one("never, of a write", 1, 1, _NEVER),
    _one("never, of a read", 0, 2, _NEVER),
    _one("raises", 1, 1, Answer("raises", 10)),
    _one("raises, at once", 1, 1, Answer("raises", 0)),
    _one("info, and closing takes its time", 1, 1, Answer("info", 5, "lost"), closing_ms=35),
)

#: Twenty unknown outcomes of each key, and some more.
_MANY_KEYS: Final = load(rate=UNBOUNDED, operations_per_slot=9)
#: How a load goes on, and how it ends.
_COURSES: Final = (
    LoadStory(name="all is well"),
    LoadStory(name="all is well, sets", workload="set", seed=2),
    LoadStory(name="unique values", workload_options={"values": "unique"}, seed=2),
    LoadStory(
        name="a slot catches up after a lost second and a half",
        load=load(time_limit_s=3.5, rate=25.0),
        answers={(1, 1): _NEVER},
    ),
    LoadStory(
        name="all slots are slower than the timetable",
        load=load(time_limit_s=0.8),
        usual=Answer(after_ms=127),
    ),
    LoadStory(
        name="quick refusals do not spin",
        load=load(time_limit_s=0.6),
        usual=_REFUSED,
        answers={(slot, 0): Answer(after_ms=301) for slot in range(5)},
    ),
    LoadStory(
        name="as many as there can be",
        load=load(rate=UNBOUNDED, time_limit_s=0.1),
        slot_answers=_uneven("ok"),
    ),
    LoadStory(
        name="as many as there can be, so many each",
        load=load(rate=UNBOUNDED, operations_per_slot=3),
        usual=Answer(after_ms=0),
    ),
    LoadStory(
        name="so many each, one of them unknown",
        load=load(operations_per_slot=4, time_limit_s=60.0),
        answers={(3, 2): Answer("info", 41, "lost")},
    ),
    LoadStory(name="none each", load=load(operations_per_slot=0)),
    LoadStory(
        name="operations are open at the end",
        load=load(time_limit_s=0.25),
        usual=Answer(after_ms=183),
        answers={(0, 1): _NEVER},
    ),
    LoadStory(name="interrupted", interrupt_ms=170, answers={(3, 0): Answer(after_ms=401)}),
    LoadStory(name="interrupted at once", interrupt_ms=0),
    LoadStory(name="interrupted, nothing answers", interrupt_ms=170, usual=_NEVER),
    LoadStory(
        name="a slot retires again and again",
        load=load(time_limit_s=1.1, rate=100.0),
        slot_answers={1: Answer("info", 8, "lost")},
    ),
    LoadStory(
        name="keys are given up after twenty unknown outcomes",
        load=_MANY_KEYS,
        slot_answers=_uneven("info"),
    ),
    LoadStory(name="slots of a worker process", slots=(1, 3), answers={(3, 1): Answer("info", 5)}),
    LoadStory(name="the timetable begins later", start_ms=130),
    LoadStory(name="the timetable began before", start_ms=-400, slots=(1,)),
    LoadStory(
        name="a client raises while others are open",
        answers={(2, 1): Answer("raises", 5), (3, 0): Answer(after_ms=301), (0, 0): _NEVER},
    ),
    LoadStory(
        name="readers are pinned",
        load=load(concurrency=7, rate=70.0, time_limit_s=0.4),
        slot_answers={1: _REFUSED},
    ),
    LoadStory(
        name="brokers are viewed",
        workload="topics",
        observers=OBSERVERS,
        answers={(1, 1): Answer("info", 5, "lost"), (0, 1): Answer("fail", 5, "exists")},
    ),
    LoadStory(
        name="brokers change topics",
        workload="topics",
        workload_options={"brokers": "change"},
        observers=OBSERVERS,
    ),
)

_SHORT: Final = load(time_limit_s=0.15)


def _final(name: str, answers: dict[object, Answer], **more: object) -> LoadStory:
    changes = {"load": _SHORT, "reads_finally": True, **more}
    return LoadStory(name=f"final reads: {name}", final_answers=answers, **changes)  # type: ignore[arg-type]


_REFUSES: Final = Answer("fail", 5, "not-leader")
_FINAL: Final = (
    _final("settled at once", {}),
    _final("nothing was used", {}, load=load(operations_per_slot=0)),
    _final(
        "settled after retries",
        {("leader", "n1", "r0-0", number): _REFUSES for number in range(3)},
    ),
    _final(
        "settled at the last try",
        {("leader", "n1", "r0-0", number): _REFUSES for number in range(4)},
    ),
    _final("the first key is never settled", {("leader", "n1", "r0-0"): _REFUSES}),
    _final("the last key is never settled", {("leader", "n1", "r1-0"): _REFUSES}),
    _final("no key is ever answered", {("leader", "n1"): _NEVER}),
    _final(
        "a follower refuses three keys in a row",
        {("pinned", "n2"): _REFUSES},
        load=_MANY_KEYS,
        slot_answers=_uneven("info"),
    ),
    _final(
        "a follower refuses two keys, answers one, and refuses the others",
        {("pinned", "n2"): _REFUSES, ("pinned", "n2", "r0-0-1"): Answer()},
        load=_MANY_KEYS,
        slot_answers=_uneven("info"),
    ),
    _final("reads time out", {("pinned", "n3"): Answer("info", 1000, "timeout")}),
    _final("a reader's client raises", {("pinned", "n3"): Answer("raises", 5)}),
    _final("a lonely failure of the leader's reader", {("leader", "n1", "r1-0", 0): _NEVER}),
    _final("sets", {}, workload="set"),
    _final(
        "observers are asked", {("pinned", "n5"): _REFUSES}, workload="topics", observers=OBSERVERS
    ),
)

LOAD_STORIES: Final = {"outcomes": _OUTCOMES, "courses": _COURSES, "final_reads": _FINAL}
