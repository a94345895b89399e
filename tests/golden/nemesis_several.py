"""Stories of schedules: targets by role and chance, faults that wait for each other, failures."""

from collections.abc import Iterator, Sequence
from typing import Any, Final

from splitbrain.contracts.fault import Fault
from splitbrain.nemesis.targets import (
    ALL,
    FOLLOWER,
    HALVES,
    LAGGARD,
    LAST_LEADER,
    LEADER,
    THERE,
    random_target,
)
from tests.golden.story import NODES, Happening, Story, awaited, planned

#: Kind, target, beginning and length in ms.
_Brief = tuple[str, str, int, int]
#: More faults than are ever carried out at once.
_MANY: Final = 34
_THREE: Final[tuple[_Brief, ...]] = (
    ("partition", "n5", 1000, 6000),
    ("kill", "n4", 1500, 4000),
    ("delay", LEADER, 2000, 6000),
)


def several() -> Iterator[Story]:
    """All stories of schedules."""
    yield Story(name="no fault", schedule=())
    yield from _targets()
    yield from _windows()
    yield from _exclusive()
    yield from _waiting()
    yield from _failures()


def _story(name: str, briefs: Sequence[_Brief], *happenings: Happening, **world: Any) -> Story:
    return Story(name=name, schedule=_schedule(briefs), happenings=happenings, **world)


def _schedule(briefs: Sequence[_Brief]) -> tuple[Fault, ...]:
    return tuple(
        planned(kind, target, index=index, at_ms=at_ms, lasts_ms=lasts_ms)
        for index, (kind, target, at_ms, lasts_ms) in enumerate(briefs)
    )


def _targets() -> Iterator[Story]:
    for target in (HALVES, random_target(1), random_target(2), FOLLOWER):
        for draw in (0, 1, 123_456):
            schedule = (planned("partition", target, draw=draw, lasts_ms=1000),)
            yield Story(name=f"{target} by its draw", schedule=schedule)
    for kind in ("kill", "pause", "terminate", "cpu", "clock-jump", "power"):
        yield _story("all nodes", [(kind, ALL, 1000, 1500)])
    yield _story("nobody has led before", [("kill", LAST_LEADER, 1000, 1500)])
    briefs = [("kill", LEADER, 1000, 1500), ("partition", LAST_LEADER, 4000, 1500)]
    yield _story("the last leader, led since by another one", briefs)
    yield _story("the last leader, while nobody leads", briefs, Happening("unled", at_ms=3500))
    behind = [("partition", "n3", 1000, 6000), ("kill", LAGGARD, 3000, 2000)]
    yield _story("the laggard", behind)
    yield _story("the laggard, nobody tells", behind, tells=False)
    yield _story("a node that is not there", [("kill", "n9", 1000, 1500)])


def _windows() -> Iterator[Story]:
    later: list[_Brief] = [("kill", "n5", 1000, 2000), ("kill", "n4", 3000, 2000)]
    yield _story("one after the other", later)
    # The second one waits until the first one's clients are served.
    unserved = Happening("unserved", at_ms=2000)
    yield _story("one after the other, whose heal takes long", later, unserved)
    served = Happening("served", at_ms=9000)
    yield _story("one after the other, both late", later, unserved, served, load_ms=8000)
    yield _story("one after the other, the first has no target", [
        ("kill", LEADER, 1000, 2000), ("pause", "n4", 3000, 2000),
    ], Happening("unled", at_ms=500))  # fmt: skip
    yield _story("three at once", _THREE)
    yield _story("three at once, interrupted", _THREE, Happening("interrupt", at_ms=3000))
    yield _story("in force at the end of the load", _THREE, load_ms=2500)
    many: list[_Brief] = [("delay", "n5", 1000 + number, 500) for number in range(_MANY)]
    yield _story("more than may be in force at once", many)
    crossing: list[_Brief] = [
        ("pause", "n2", 1000, 4000), ("kill", "n2", 1500, 1500), ("pause", "n2", 3500, 3000),
    ]  # fmt: skip
    yield _story("on one node, in turn", crossing)
    shapes: list[_Brief] = [
        ("loss", "n2", 1000, 4000), ("delay", "n2", 2000, 4000), ("rate", "n3", 2500, 1000),
    ]  # fmt: skip
    yield _story("three shapes of the same links", shapes)


def _exclusive() -> Iterator[Story]:
    for first, second in (
        ("full-disk", "disk-stall"), ("disk-error", "flip"), ("wipe", "truncate"),
        ("clock-jump", "clock-drift"), ("clock-strobe", "clock-jump"), ("memory", "cpu"),
        ("power", "wipe"), ("full-disk", "power"), ("kill", "wipe"), ("pause", "memory"),
    ):  # fmt: skip
        for node in ("n2", "n3"):
            briefs = [(first, "n2", 1000, 3000), (second, node, 2000, 1000)]
            yield _story(f"{second} amid {first}", briefs)


def _waiting() -> Iterator[Story]:
    new_leader = awaited("leads", epoch=2)
    yield Story(
        name="one waits for what the other brings about",
        schedule=(
            planned("kill", THERE, at_ms=0, lasts_ms=2000, when=new_leader),
            planned("kill", LEADER, index=1, at_ms=1000, lasts_ms=5000),
        ),
    )
    yield Story(
        name="who waits keeps nobody from striking",
        schedule=(
            planned("pause", "n3", at_ms=500, when=awaited("truncates", timeout_ms=4000)),
            planned("kill", "n4", index=1, at_ms=1000, lasts_ms=1000),
            planned("kill", "n5", index=2, at_ms=2000, lasts_ms=1000),
        ),
    )
    for on in ("leads", "changes-role", "leader-appends", "follower-appends", "commits",
               "learns-commit", "truncates", "starts"):  # fmt: skip
        when = awaited(on, "any", count=2, timeout_ms=2500)
        yield Story(name=f"awaited: {on}", schedule=(planned("pause", "n4", when=when),))
    for node in ("leader", "n3"):
        when = awaited("learns-commit", node, timeout_ms=700)
        yield Story(name=f"awaited at {node}", schedule=(planned("pause", THERE, when=when),))
    late = awaited("commits", "leader", delay_ms=2000)
    story = planned("pause", "n4", when=late)
    yield Story(name="awaited, and the load is over", schedule=(story,), load_ms=2000)
    # It strikes all the same: the end of the load is looked for before the target alone.
    yield _story(
        "the load ends while a target is awaited",
        [("pause", LEADER, 1000, 1000)],
        Happening("unled", at_ms=500),
        Happening("led", at_ms=4000),
        load_ms=2000,
    )


def _failures() -> Iterator[Story]:
    for act in ("cut", "restore", "kill", "start", "shape", "unshape"):
        yield _story(f"three at once, {act} fails", _THREE, failing={act: 0})
        yield _story(f"three at once, {act} does nothing", _THREE, deaf=frozenset({act}))
    yield _story("three at once, heal_all fails", _THREE, failing={"heal_all": 0})
    both = [("kill", "n4", 1000, 3000), ("kill", "n5", 1500, 3000)]
    yield _story("two heals fail", both, failing={"start": 0})
    yield _story("the first fails before the second begins", [
        ("pause", "n4", 1000, 1000), ("kill", "n5", 5000, 1000),
    ], failing={"resume": 0})  # fmt: skip
    yield _story(
        "a failure while another one waits for its moment",
        [("pause", "n4", 1000, 5000), ("cpu", "n5", 2000, 5000)],
        failing={"throttle": 0},
    )
    ended = Happening("exit", at_ms=2500, node=NODES[4])
    yield _story("three at once, a node of one ends by itself", _THREE, ended)
    bystander = Happening("exit", at_ms=2500, node=NODES[1])
    yield _story("three at once, another node ends by itself", _THREE, bystander)
