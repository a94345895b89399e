"""Sessions of brokers: red where a silent one stays in service, and silent where nothing was due.

Each story is what one controller's log and state events tell; a mutant, made by replacing one piece
of the checker's source, must tell something else of at least one of them.
"""

from collections.abc import Mapping, Sequence
from types import MappingProxyType, ModuleType
from typing import Any, Final, NamedTuple

import msgspec
import pytest

from splitbrain.checker import broker_sessions
from splitbrain.checker.evidence import Evidence
from splitbrain.checker.fingerprints import fingerprint_of
from splitbrain.checker.verdict import CheckResult, Verdict
from splitbrain.contracts.budget import Unlimited
from splitbrain.contracts.committed import CommittedLog, CommittedRecord, Standing
from splitbrain.contracts.fault import FaultEvent, FaultTraits, Link
from splitbrain.contracts.names import NodeName
from splitbrain.contracts.state_event import StateEvent
from tests.unit.checker.mutated import mutated

MS: Final = 1_000_000
S: Final = 1_000 * MS
#: A node's clock runs since long before the run.
CLOCK_NS: Final = 7_000 * S
SESSION_MS: Final = 2_000
BROKER: Final = "n4"
#: Commits come so often, ms.
EVERY_MS: Final = 100

VALID, INVALID, UNKNOWN = Verdict.VALID, Verdict.INVALID, Verdict.UNKNOWN


def kill(
    start: int, end: int, node: str = BROKER, index: int = 0, **fields: Any
) -> list[FaultEvent]:
    """A fault from one second to another, seen after 0.1 s, and gone 0.1 s after its healing."""
    traits = fields.pop("traits", FaultTraits("at-once", silences="nodes"))
    phases = fields.pop("phases", ("invoked", "verified", "healing", "removed"))
    times = {
        "invoked": start * S,
        "verified": start * S + 100 * MS,
        "not-bitten": start * S + 200 * MS,
        "healing": end * S,
        "removed": end * S + 100 * MS,
    }
    fields = {"kind": "kill", "target": node, "nodes": (NodeName(node),), **fields}
    return [
        FaultEvent(times[phase], index, phase=phase, traits=traits, **fields) for phase in phases
    ]


def cut(start: int, end: int, *links: tuple[str, str]) -> list[FaultEvent]:
    """Links that lose everything."""
    found = tuple(Link(NodeName(a), NodeName(b)) for a, b in links)
    return kill(start, end, kind="partition", links=found, traits=FaultTraits(silences="links"))


def joined(offset: int, *, serves: bool, epoch: int = 1, node: str = BROKER) -> CommittedRecord:
    value = msgspec.to_builtins(Standing("BrokerRegistrationChangeRecord", node, serves=serves))
    return CommittedRecord(offset, epoch, None, None, value, f"{offset}")


class Reign(NamedTuple):
    """One leadership: a commit of one record every ``EVERY_MS``, from one second to another."""

    node: str
    epoch: int
    start: int
    end: int
    #: Seconds at which nothing is committed.
    asleep: range = range(0)
    #: Seconds whose lines the harness reads late, all at once.
    late: range = range(0)
    incarnation: int = 0


class Story(NamedTuple):
    told: Verdict
    faults: Sequence[FaultEvent]
    #: By tenths of a second since the start: whether the broker serves from then on.
    standings: Mapping[int, bool] = MappingProxyType({})
    reigns: Sequence[Reign] = (Reign("n1", 1, 0, 30),)
    #: First offset that the logs have, and one past their last.
    covered: tuple[int, int] = (0, 10_000)
    #: Offsets that are in no log.
    hole: range = range(0)
    session_ms: int | None = SESSION_MS
    words: Sequence[StateEvent] = ()
    has_clock: bool = True


def events_of(reign: Reign, *, has_clock: bool) -> list[StateEvent]:
    """Tell of the reign; offsets are tenths of a second, one record each."""
    made: list[StateEvent] = []
    usual: dict[str, Any] = {
        "node": reign.node, "incarnation": reign.incarnation, "epoch": reign.epoch,
    }  # fmt: skip

    def tell(at: int, **fields: Any) -> None:
        seen = reign.late.stop * S if at // S in reign.late else at + 20 * MS
        node_time = at + CLOCK_NS if has_clock else None
        event = StateEvent(
            sequence=len(made) + 1_000 * reign.epoch, time=seen, node_time=node_time,
            **usual, **fields,
        )  # fmt: skip
        made.append(event)

    tell(reign.start * S, kind="role", role="leader")
    for tenth in range(reign.start * 10, reign.end * 10):
        if tenth // 10 not in reign.asleep:
            tell(tenth * EVERY_MS * MS, kind="commit", base_offset=tenth, offset=tenth + 1)
    tell(reign.end * S, kind="role", role="follower")
    return made


def evidence_of(story: Story) -> Evidence:
    records: list[CommittedRecord] = []
    standings = {5: True, **story.standings}
    for reign in story.reigns:
        for tenth in range(reign.start * 10, reign.end * 10):
            serves = standings.get(tenth)
            if tenth == reign.start * 10:
                records.append(CommittedRecord(tenth, reign.epoch, None, None, None, f"{tenth}"))
            elif serves is None:
                value = "NoOpRecord"
                records.append(CommittedRecord(tenth, reign.epoch, None, None, value, f"{tenth}"))
            else:
                records.append(joined(tenth, serves=serves, epoch=reign.epoch))
    first, end = story.covered
    shown = [record for record in records if first <= record.offset < end]
    before = [record for record in shown if record.offset < story.hole.start]
    behind = [record for record in shown if record.offset >= story.hole.stop]
    logs = {
        node: CommittedLog(node, part[0].offset, part[-1].offset + 1, tuple(part))
        for node, part in (("n1", before), ("n2", behind))
        if part
    }
    told: dict[str, list[StateEvent]] = {BROKER: list(story.words)}
    for reign in story.reigns:
        told.setdefault(reign.node, []).extend(events_of(reign, has_clock=story.has_clock))
    return Evidence(
        operations=(),
        state_events={node: tuple(events) for node, events in told.items()},
        committed_logs=logs,
        voters=3,
        observers=frozenset({BROKER, "n5"}),
        faults=tuple(story.faults),
        session_ms=story.session_ms,
    )


def word(at: int, incarnation: int = 0) -> StateEvent:
    """Something that the broker says itself."""
    return StateEvent(BROKER, 1, incarnation, "append", 1, time=at * S)


FENCED: Final = {75: False}
TWO: Final = (Reign("n1", 1, 0, 8), Reign("n2", 2, 8, 30))
STORIES: Final = {
    "nobody was silent": Story(VALID, ()),
    "fenced in time": Story(VALID, kill(5, 12), FENCED),
    "never fenced": Story(INVALID, kill(5, 12)),
    "fenced much too late": Story(INVALID, kill(5, 12), {110: False}),
    "back before its session was over": Story(VALID, kill(5, 7)),
    "silent for a little longer than a session": Story(VALID, kill(5, 8), {77: False}),
    "fenced already": Story(VALID, kill(5, 12), {30: False}),
    "fenced before and taken in again": Story(INVALID, kill(5, 12), {30: False, 40: True}),
    "never taken in": Story(VALID, kill(5, 12), {5: False}),
    "another broker is fenced": Story(INVALID, kill(5, 12, "n4")),
    "a fault on a voter": Story(VALID, kill(5, 12, "n3")),
    "a fault that was never seen": Story(
        VALID, kill(5, 12, phases=("invoked", "verified", "not-bitten", "healing", "removed"))
    ),
    "a fault that was never healed": Story(VALID, kill(5, 12, phases=("invoked", "verified"))),
    "a fault that silences nobody": Story(VALID, kill(5, 12, traits=FaultTraits("at-once"))),
    "two faults, one after the other": Story(
        INVALID, (*kill(5, 7), *kill(6, 8, index=1, traits=FaultTraits(silences="nodes")))
    ),
    "two faults with time between": Story(VALID, (*kill(5, 7), *kill(8, 10, index=1))),
    "it spoke after all": Story(VALID, kill(5, 12), words=(word(6),)),
    "last lines that were read late": Story(
        INVALID, kill(5, 12), words=(StateEvent(BROKER, 1, 0, "append", 1, time=5 * S + 200 * MS),)
    ),
    "cut off from the controller": Story(INVALID, cut(5, 12, (BROKER, "n1"), ("n1", BROKER))),
    "cut off from another controller": Story(VALID, cut(5, 12, (BROKER, "n2"))),
    "it is heard and hears nothing": Story(VALID, cut(5, 12, ("n1", BROKER))),
    "a new leader gives new sessions": Story(VALID, kill(6, 10), reigns=TWO),
    "a new leader that never fences it": Story(INVALID, kill(6, 14), reigns=TWO),
    "fenced by the new leader": Story(VALID, kill(6, 14), {105: False}, TWO),
    "fenced by the leader before": Story(VALID, kill(5, 14), {76: False}, TWO),
    "leaders that do not last": Story(
        VALID,
        kill(1, 20),
        reigns=[Reign(f"n{i % 3 + 1}", i + 1, 2 * i, 2 * i + 2) for i in range(10)],
    ),
    "a controller that is frozen": Story(
        VALID, kill(5, 12), reigns=(Reign("n1", 1, 0, 30, asleep=range(6, 13)),)
    ),
    "a controller that was frozen for a while and wakes up": Story(
        VALID, kill(5, 12), {101: False}, (Reign("n1", 1, 0, 30, asleep=range(6, 10)),)
    ),
    "a controller that is hit itself": Story(
        VALID, (*kill(5, 12), *kill(6, 11, "n1", 1, traits=FaultTraits()))
    ),
    "a session begins after the fault on the controller": Story(
        VALID, (*kill(5, 13), *kill(6, 11, "n1", 1, traits=FaultTraits()))
    ),
    "it lasts long enough after that": Story(
        INVALID, (*kill(5, 16), *kill(6, 11, "n1", 1, traits=FaultTraits()))
    ),
    "a controller cut off that commits no more": Story(
        VALID, kill(5, 12), reigns=(Reign("n1", 1, 0, 6), Reign("n2", 2, 11, 30))
    ),
    "lines that are read late": Story(
        INVALID, kill(5, 9), reigns=(Reign("n1", 1, 0, 30, late=range(6, 11)),)
    ),
    "no clock of its own": Story(INVALID, kill(5, 12), has_clock=False),
    "logs without a beginning": Story(VALID, kill(5, 12), covered=(40, 10_000)),
    "logs that begin before it was taken in": Story(
        INVALID, kill(5, 12), {45: True}, covered=(40, 10_000)
    ),
    "logs that end too early": Story(VALID, kill(5, 12), covered=(0, 70)),
    "logs with a hole": Story(VALID, kill(5, 12), {65: False}, hole=range(60, 70)),
    "no logs": Story(UNKNOWN, kill(5, 12), covered=(0, 0)),
    "nobody told who led": Story(UNKNOWN, kill(5, 12), reigns=()),
    "no session is promised": Story(UNKNOWN, kill(5, 12), session_ms=None),
    "a session that lasts longer": Story(VALID, kill(5, 12), session_ms=9_000),
}  # fmt: skip


def judged(story: Story, module: ModuleType = broker_sessions) -> CheckResult:
    return module.check(evidence_of(story), Unlimited())


@pytest.mark.parametrize("name", STORIES)
def test_a_story_is_told_as_it_was(name: str) -> None:
    result = judged(STORIES[name])
    assert result.verdict is STORIES[name].told
    assert result.reason.endswith(".")
    assert (fingerprint_of(result) is not None) == (result.verdict is INVALID)


def test_the_sentence_names_broker_controller_times_and_fault() -> None:
    result = judged(STORIES["never fenced"])
    assert result.reason == (
        "n1, which led epoch 1 and committed records, had heard nothing of broker n4 for 2,720 ms "
        "at 7.820 s (fault 0 (kill:n4)) and had not fenced it; a session is 2,000 ms."
    )
    assert result.figures == {"silences": 1, "sessions-over": 1, "silent-not-fenced": 1}


def test_sessions_that_were_over_are_counted() -> None:
    assert judged(STORIES["fenced in time"]).figures["sessions-over"] == 1
    assert judged(STORIES["back before its session was over"]).figures["sessions-over"] == 0


MUTANTS: Final = {
    "any silence is over": ("look.time - since <= session * parts // of", "False"),
    "no session is ever over": ("look.time - since <= session * parts // of", "True"),
    "a new leader gives no new session": (
        "max(silence.start, watch.looks[0].time)", "silence.start",
    ),
    "the silence begins with the reign": (
        "max(silence.start, watch.looks[0].time)", "watch.looks[0].time",
    ),
    "a controller is awake at once": ("awake > session // _AWAKE_PARTS", "awake > 0"),
    "sleep counts as awake": ("awake += min(step, session // _AWAKE_STEPS)", "awake += step"),
    "silence never ends": ("if look.time > silence.end:", "if False:"),
    "links are forgotten": ("silence.towards is None or reign.node in silence.towards", "True"),
    "links that lead to it": ("if link.source == node)", "if link.destination == node)"),
    "faults on the controller are passed over": (
        "if not any(window.start <= time <= window.end for window in hit):", "if True:",
    ),
    "one stretch": ("sum(window.end < time for window in hit)", "0"),
    "lines count when they are read": (
        "at if event.node_time is None else event.node_time + late", "at",
    ),
    "any fault silences": ('what == "nodes" and node', "node"),
    "the broker's own words are passed over": (
        "heard = _first_word(evidence.state_events.get(node, ()), start, end)", "heard = end",
    ),
    "all its words count": ("start + _UNREAD_NS < time", "start < time"),
    "silences stay apart": ("silence.start <= last.end", "False"),
    "holes are passed over": ("if offset != expected:", "if False:"),
    "what is not known does not serve": ("serves = now is True", "serves = now is not False"),
    "logs have no end": ("if look.end_offset > self.end:", "if False:"),
    "fenced is not looked for": ("if not serves or look", "if look"),
    "unseen faults count": (" or not has_bitten(phases)", ""),
}  # fmt: skip


@pytest.mark.parametrize("name", MUTANTS)
def test_a_mutant_tells_some_story_otherwise(name: str) -> None:
    mutant = mutated(broker_sessions, *MUTANTS[name])

    def told(story: Story) -> object:
        try:
            return judged(story, mutant).verdict.value
        except KeyError:
            return "crashed"

    assert any(told(story) != story.told.value for story in STORIES.values())
