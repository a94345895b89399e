"""The stories of one fault of each kind: every way in which it may end."""

from collections import Counter
from collections.abc import Iterator
from typing import Any, Final

from splitbrain.contracts.names import NodeName
from splitbrain.nemesis import acts
from splitbrain.nemesis.acts import Act
from splitbrain.nemesis.fault_kind import Course, FaultKind
from splitbrain.nemesis.fault_options import BEYOND_PROMISE
from splitbrain.nemesis.kinds import fault_kind
from splitbrain.nemesis.targets import ALL, FOLLOWER, THERE, ClusterView
from tests.golden.story import NODES, Happening, Story, awaited, planned

#: Methods of the runtime whose names are not those of their acts.
_METHODS: Final[dict[type[Act], str]] = {
    acts.ShapeLinks: "shape",
    acts.UnshapeLinks: "unshape",
    acts.ResetLinks: "reset",
    acts.UnresetLinks: "unreset",
    acts.LimitMemory: "limit_memory",
    acts.UnlimitMemory: "unlimit_memory",
    acts.PowerOff: "power_off",
    acts.RemoveMember: "remove",
    acts.ReplaceMember: "add",
    acts.ChangeFile: "change",
    acts.PutBack: "change",
}
#: Options other than the usual ones, for kinds that have some.
_OTHER_OPTIONS: Final[dict[str, dict[str, Any]]] = {
    "partition": {"beside": 1},
    "flap": {"count": 2},
    "cut-then-kill": {"kill_after_ms": 700},
    "terminate": {"patience_ms": 200},
    "restart": {"patience_ms": 200},
    "rolling-restart": {"patience_ms": 200},
    "crash-loop": {"count": 7},
    "cpu": {"cpu_share": 0.5},
    "memory": {"limit_mib": 12},
    "loss": {"loss": 0.9, "direction": "in"},
    "delay": {"delay_ms": 900, "jitter_ms": 0, "direction": "out"},
    "reorder": {"reorder": 0.25, "delay_ms": 20},
    "duplicate": {"duplicate": 0.1},
    "rate": {"rate_kbit": 2000},
    "black-hole": {"bytes_max": 1400},
    "reset": {"direction": "in"},
    "flip": {"file": "a.*", "offset": 3, "length": 2},
    "truncate": {"file": "a.*", "length": 5},
    "restore": {"file": "a.*"},
    "clock-jump": {"offset_ms": -30_000},
    "clock-drift": {"drift_ppm": -400_000},
    "clock-strobe": {"offset_ms": 700, "period_ms": 400},
}
_N3: Final = "n3"
_DRAWS: Final = (0, 123_456)


class _Kind:
    """One kind, and what its stories are made of."""

    def __init__(self, name: str) -> None:
        self.kind: FaultKind = fault_kind(name)
        self.name = name
        self.first = self.kind.first_target
        #: Options without which the gate lets it never strike.
        self.options: dict[str, Any] = {BEYOND_PROMISE: True} if self.kind.rule == "lies" else {}
        fault = planned(name, self.first, options=self.options)
        actual = self.kind.actual(fault, ClusterView(NODES, leader=NODES[0]))
        assert actual is not None
        self.course: Course = self.kind.course_of(actual, fault.duration_us, NODES)
        #: A node that it hits.
        self.hit: NodeName = actual.nodes[0]
        self.steps = [act for step in self.course.steps for act in step.acts]

    def story(
        self, name: str, *happenings: Happening, target: str = "", fault: Any = (), **world: Any
    ) -> Story:
        """A story of one fault; ``fault`` has fields of it, ``world`` those of the story."""
        more: dict[str, Any] = {"options": self.options, **dict(fault)}
        planned_fault = planned(self.name, target or self.first, **more)
        return Story(name=name, schedule=(planned_fault,), happenings=happenings, **world)

    def calls(self) -> list[str]:
        """Methods of the runtime that the course calls, each once."""
        return list(dict.fromkeys(method_of(act) for act in (*self.steps, *self.course.heal)))

    def strokes(self) -> Iterator[tuple[str, int]]:
        """Acts that the steps do more than once, each with its second and its last call there."""
        counts: Counter[str] = Counter()
        for act in self.steps:
            counts[method_of(act)] += _calls_of(act)
        for call, count in counts.items():
            if count > 1:
                yield from ((call, number) for number in sorted({1, count - 1}))

    def amid(self, what: Any, act: Act, before: list[Act], **more: Any) -> Happening:
        """Something that happens amid an act of the course, which comes after others."""
        name = method_of(act)
        number = sum(_calls_of(one) for one in before if method_of(one) == name)
        return Happening(what, act=(name, number), **more)

    def amid_first(self, what: Any, **more: Any) -> Happening:
        return self.amid(what, self.steps[0], [], **more)

    def amid_heal(self, what: Any, **more: Any) -> Happening:
        return self.amid(what, self.course.heal[-1], self.steps, **more)


def method_of(act: Act) -> str:
    """The runtime's method that does the act."""
    return _METHODS.get(type(act), type(act).__name__.lower())


def _calls_of(act: Act) -> int:
    is_one = isinstance(act, acts.LinkAct | acts.PowerOff)
    return 1 if is_one else len(act.nodes)


def stories_of(name: str) -> list[Story]:
    """All stories of one fault of the kind."""
    kind = _Kind(name)
    return [
        *_in_order(kind),
        *_ended_early(kind),
        *_without_target(kind),
        *_runtime_fails(kind),
        *_nodes_end(kind),
        *_awaited(kind),
        *_refused(kind),
        *_not_served(kind),
    ]


def _in_order(kind: _Kind) -> Iterator[Story]:
    other = ALL if kind.kind.refuses(FOLLOWER) else FOLLOWER
    for target in dict.fromkeys((kind.first, other)):
        for draw in _DRAWS:
            yield kind.story(f"in order, {target}", target=target, fault={"draw": draw})
    if not kind.kind.refuses(_N3):
        yield kind.story("in order, a fixed node", target=_N3)
    if kind.name in _OTHER_OPTIONS:
        options = {**kind.options, **_OTHER_OPTIONS[kind.name]}
        yield kind.story("other options", fault={"options": options})
    if kind.kind.links is not None and not kind.kind.refuses("n5"):
        observers = (NODES[4],)
        yield kind.story("an observer by its name", target="n5", observers=observers)
        yield kind.story("beside an observer", observers=observers)


def _ended_early(kind: _Kind) -> Iterator[Story]:
    stop = Happening("interrupt", at_ms=2500)
    yield kind.story("interrupted before", Happening("interrupt", at_ms=500))
    yield kind.story("interrupted during the first act", kind.amid_first("interrupt"))
    later = kind.amid_first("interrupt", later_ms=50)
    yield kind.story("interrupted right after the first act", later)
    yield kind.story("interrupted in force", stop)
    steps = kind.course.steps
    if len(steps) > 1:
        before = [act for step in steps[:-1] for act in step.acts]
        last = kind.amid("interrupt", steps[-1].acts[0], before)
        yield kind.story("interrupted during the last step", last)
    yield kind.story("interrupted during the heal", kind.amid_heal("interrupt"))
    unserved = Happening("unserved", at_ms=2500)
    yield kind.story("interrupted after the heal", unserved, Happening("interrupt", at_ms=7000))
    yield kind.story("the load over before its moment", load_ms=500)


def _without_target(kind: _Kind) -> Iterator[Story]:
    unled = Happening("unled", at_ms=500)
    yield kind.story("nobody leads", unled)
    yield kind.story("somebody leads late", unled, Happening("led", at_ms=3500))
    yield kind.story("interrupted without a leader", unled, Happening("interrupt", at_ms=3000))


def _runtime_fails(kind: _Kind) -> Iterator[Story]:
    for call in kind.calls():
        yield kind.story(f"{call} does nothing", deaf=frozenset({call}))
    if "terminate" in kind.calls():
        yield kind.story(
            "start does nothing to who was killed for taking its time",
            deaf=frozenset({"start"}),
            asked_code=137,
        )
    # Of acts that are done again and again: a stroke that is missed.
    for call, number in kind.strokes():
        yield kind.story(f"{call} is missed once", missed={call: (number,)})
    for call in kind.calls():
        yield kind.story(f"{call} fails", failing={call: 0})
    heal = kind.amid_heal("interrupt").act
    assert heal is not None
    if heal[1]:
        yield kind.story("the heal fails", failing=dict([heal]))
    yield kind.story("the first act is broken", broken=frozenset({method_of(kind.steps[0])}))


def _nodes_end(kind: _Kind) -> Iterator[Story]:
    node = kind.hit
    yield kind.story("its node ended just before", Happening("exit", at_ms=999, node=node))
    yield kind.story("its node ends in force", Happening("exit", at_ms=2500, node=node))
    if "start" in kind.calls():
        yield kind.story("its node is killed in force", Happening("oom", at_ms=2500, node=node))
    amid = kind.amid_heal("exit", later_ms=76, node=node)
    yield kind.story("its node ends right after the heal", amid)


def _awaited(kind: _Kind) -> Iterator[Story]:
    commits = awaited("commits", "leader", count=3)
    yield kind.story("awaited, comes", fault={"when": commits})
    later = awaited("learns-commit", "n2", epoch=1, count=2, delay_ms=250)
    target = kind.first if kind.kind.refuses(THERE) else THERE
    yield kind.story("awaited, with a delay", target=target, fault={"when": later})
    never = awaited("truncates", timeout_ms=330)
    yield kind.story("awaited, does not come", fault={"when": never})
    stop = Happening("interrupt", at_ms=1210)
    yield kind.story("awaited, interrupted", stop, fault={"when": never})
    soon = Happening("interrupt", at_ms=1300)
    delayed = {"when": later}
    yield kind.story("awaited, interrupted in the delay", soon, target=target, fault=delayed)
    yield kind.story("awaited, nobody tells", fault={"when": commits}, tells=False)


def _refused(kind: _Kind) -> Iterator[Story]:
    rule = kind.kind.rule
    if rule != "keeps" or kind.kind.links is not None:
        yield kind.story("nobody tells", tells=False)
    if rule == "keeps":
        return
    yield kind.story("beyond the promise", fault={"options": {}})
    yield kind.story("nobody tells of disks", fault={"options": {}}, tells_flushed=False)
    if rule == "lies":
        return
    options = {BEYOND_PROMISE: True}
    yield kind.story("nobody tells, and it may", fault={"options": options}, tells=False)
    yield Story(
        name="the third of five",
        schedule=tuple(
            planned(kind.name, f"n{number + 2}", index=number, at_ms=1000 + 4000 * number)
            for number in range(3)
        ),
    )
    behind = planned("partition", "n4", at_ms=500, lasts_ms=9000, options={"beside": 1})
    for name, more in (("spared", {}), ("not spared", options)):
        hit = planned(kind.name, "n2", index=1, at_ms=1500, options=more)
        yield Story(name=f"{name}, others are behind", schedule=(behind, hit))


def _not_served(kind: _Kind) -> Iterator[Story]:
    unserved = Happening("unserved", at_ms=2500)
    yield kind.story("clients are never served again", unserved)
    yield kind.story("clients are served late", unserved, Happening("served", at_ms=8000))
    if kind.kind.links is not None:
        stuck = Happening("stuck", at_ms=2500, node=NODES[1])
        yield kind.story("a node takes in nothing after the heal", stuck)
