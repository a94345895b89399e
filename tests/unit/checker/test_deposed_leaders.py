"""Deposed leaders: red where one goes on for too long, and silent where something hindered it.

Each story is what the nodes tell of their roles; a mutant, made by replacing one piece of the
checker's source, must tell something else of at least one of them.
"""

from collections.abc import Mapping, Sequence
from types import MappingProxyType, ModuleType
from typing import Any, Final, NamedTuple

import pytest

from splitbrain.checker import deposed_leaders
from splitbrain.checker.evidence import Evidence
from splitbrain.checker.verdict import CheckResult, Verdict
from splitbrain.contracts.budget import Budget, Unlimited
from splitbrain.contracts.fault import FaultEvent, FaultPhase, FaultTraits
from splitbrain.contracts.names import NodeName
from splitbrain.contracts.state_event import Resigning, StateEvent
from tests.unit.checker.mutated import mutated

S: Final = 1_000_000_000
METADATA: Final = "__cluster_metadata"
LINKS: Final = FaultTraits(silences="links")
FROZEN: Final = FaultTraits(silences="nodes")
SLOWED: Final = FaultTraits()
VALID, INVALID, UNKNOWN = Verdict.VALID, Verdict.INVALID, Verdict.UNKNOWN

#: Seconds, epoch, role; a part with its name instead of the epoch by which faults are aimed.
Told = tuple[float, int, str]


def events(node: str, *told: Told, part: str | None = None) -> list[StateEvent]:
    """All that a node told, in its only life."""
    found: list[StateEvent] = []
    for sequence, (seconds, epoch, role) in enumerate(told):
        known: dict[str, Any] = {"kind": role} if role == "stopped" else {}
        if not known and part is None:
            known = {"kind": "role", "role": role}
        elif not known:
            detail = {"part": part, "epoch": epoch, "role": role, "leader": None}
            known = {"kind": "part", "detail": detail}
        found.append(StateEvent(node, sequence, 0, epoch=epoch, time=round(seconds * S), **known))
    return found


def fault(
    start: float, end: float, node: str, traits: FaultTraits, index: int = 0
) -> list[FaultEvent]:
    """A fault from one second to another."""
    times: dict[FaultPhase, float] = {
        "invoked": start,
        "verified": start,
        "healing": end,
        "removed": end,
    }
    return [
        FaultEvent(
            round(seconds * S),
            index,
            kind="some",
            target=node,
            phase=phase,
            traits=traits,
            nodes=(NodeName(node),),
        )
        for phase, seconds in times.items()
    ]


class Story(NamedTuple):
    """Roles as the nodes told them, and the verdict that is due."""

    told: Verdict
    nodes: Mapping[str, Sequence[StateEvent]]
    faults: Sequence[FaultEvent] = ()
    resigning: Resigning | None = Resigning(10_000)


def two(
    until: float, part: str | None = None, since: float = 5
) -> Mapping[str, Sequence[StateEvent]]:
    """n1 leads epoch 1 until some second, n2 leads epoch 2 from another one on, for 40 s."""
    return {
        "n1": events("n1", (1, 1, "leader"), (until, 2, "follower"), part=part),
        "n2": events("n2", (since, 2, "leader"), (45, 2, "stopped"), part=part),
    }


STORIES: Final[Mapping[str, Story]] = MappingProxyType(
    {
        "resigns before anybody else leads": Story(VALID, two(4)),
        "resigns in time": Story(VALID, two(14)),
        "goes on for too long": Story(INVALID, two(16)),
        "goes on for too long, cut off": Story(INVALID, two(16), fault(4, 16, "n1", LINKS)),
        "frozen meanwhile": Story(VALID, two(16), fault(6, 15, "n1", FROZEN)),
        "slowed down meanwhile": Story(VALID, two(16), fault(6, 15, "n1", SLOWED)),
        "frozen, and then goes on": Story(INVALID, two(27), fault(6, 15, "n1", FROZEN)),
        "goes on, and then frozen": Story(INVALID, two(27), fault(16, 26, "n1", FROZEN)),
        "a fault that begins behind it": Story(VALID, two(14), fault(20, 26, "n1", FROZEN)),
        "has its time anew behind each fault": Story(
            VALID, two(27), [*fault(6, 7, "n1", FROZEN), *fault(16, 26, "n1", FROZEN, index=1)]
        ),
        "faults lie within one another": Story(
            VALID, two(22), [*fault(6, 20, "n1", FROZEN), *fault(7, 8, "n1", FROZEN, index=1)]
        ),
        "frozen before it was deposed": Story(INVALID, two(16), fault(2, 3, "n1", FROZEN)),
        "its successor was frozen": Story(INVALID, two(16), fault(6, 15, "n2", FROZEN)),
        "never stops": Story(
            INVALID,
            {
                "n1": events("n1", (1, 1, "leader")),
                "n2": events("n2", (5, 2, "leader"), (45, 2, "stopped")),
            },
        ),
        "one that comes back to an older epoch": Story(
            INVALID,
            {
                "n1": events("n1", (6, 1, "leader"), (30, 2, "follower")),
                "n2": events("n2", (5, 2, "leader"), (45, 2, "stopped")),
            },
            fault(7, 29, "n2", FROZEN),
        ),
        "a part": Story(INVALID, two(16, METADATA), resigning=Resigning(10_000, METADATA)),
        "a part in time": Story(VALID, two(6, METADATA), resigning=Resigning(10_000, METADATA)),
        "a part's leader that stops": Story(
            VALID,
            {
                "n1": [
                    *events("n1", (1, 1, "leader"), part=METADATA),
                    StateEvent("n1", 1, 0, epoch=0, kind="stopped", time=8 * S),
                ],
                "n2": events("n2", (5, 2, "leader"), (45, 2, "stopped"), part=METADATA),
            },
            resigning=Resigning(10_000, METADATA),
        ),
        "another part": Story(VALID, two(16, "t-0"), resigning=Resigning(10_000, METADATA)),
        "only parts are promised": Story(VALID, two(16), resigning=Resigning(10_000, METADATA)),
        "parts are not promised": Story(VALID, two(16, METADATA)),
        "a promise of longer": Story(VALID, two(16), resigning=Resigning(12_000)),
        "no promise": Story(UNKNOWN, two(16), resigning=None),
        "no events": Story(UNKNOWN, {"n1": [], "n2": []}),
    }
)  # fmt: skip


def judged(
    story: Story, checker: ModuleType = deposed_leaders, budget: Budget | None = None
) -> CheckResult:
    """Check a story."""
    evidence = Evidence(
        operations=(),
        state_events={node: tuple(told) for node, told in story.nodes.items()},
        faults=tuple(story.faults),
        resigning=story.resigning,
    )
    return checker.check(evidence, budget or Unlimited())


@pytest.mark.parametrize("name", STORIES)
def test_stories_have_their_verdicts(name: str) -> None:
    assert judged(STORIES[name]).verdict is STORIES[name].told


def test_the_sentence_names_both_leaders_their_epochs_and_the_promise() -> None:
    result = judged(STORIES["a part"])
    assert result.reason == (
        "n1 still led epoch 1 of __cluster_metadata at 16.000 s. For 11,000 ms n2 had led epoch 2, "
        "and no fault but cut links had hindered n1, which was to resign within 10,000 ms."
    )
    assert result.figures == {
        "deposed": 1,
        "longest-unhindered-ms": 11_000.0,
        "deposed-leader-goes-on": 1,
    }


def test_who_went_on_for_as_long_as_is_promised_is_counted() -> None:
    result = judged(STORIES["resigns in time"])
    assert result.reason == "1 leader went on beside a later one, none for too long."


def test_no_time_left_is_no_verdict() -> None:
    class Over(Unlimited):
        def exhausted(self) -> str | None:
            return "its time is over"

    assert judged(STORIES["goes on for too long"], budget=Over()).verdict is UNKNOWN


MUTANTS: Final = {
    "any length is too long": ("each.end - each.start > limit", "each.end > each.start"),
    "none is too long": ("each.end - each.start > limit", "False"),
    "cut links hinder": (' and window.traits.silences != "links"', ""),
    "nothing but frozen processes hinders": ('silences != "links"', 'silences == "nodes"'),
    "faults of anybody hinder": ("if older.node in window.nodes and", "if"),
    "faults of the successor hinder": (
        "older, _ = pair.by_epoch", "_, older = pair.by_epoch",
    ),
    "whoever began first is the older": (
        "older, _ = pair.by_epoch", "older = pair.first",
    ),
    "all time counts": ("in [*hindering, (end, end)]:", "in [(end, end)]:"),
    "behind the last fault nothing counts": ("[*hindering, (end, end)]", "hindering"),
    "the last part counts": ("if free_until - begin > best.end - best.start:", "if True:"),
    "a fault within another ends both": ("min(max(begin, stop), end)", "min(stop, end)"),
    "time behind the overlap counts": ("free_until = min(start, end)", "free_until = start"),
    "any part": ('event.kind == "part" and event.detail[PART] == part', 'event.kind == "part"'),
    "roles are parts": ('elif event.kind not in ("part", "role"):', "else:"),
    "nodes never stop": ("        elif event.kind", "        elif False and event.kind"),
    "the run has no end": (
        "reigns(events, windows), _end_of(events))", "reigns(events, windows), 0)",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", MUTANTS)
def test_a_mutant_tells_some_story_otherwise(name: str) -> None:
    mutant = mutated(deposed_leaders, *MUTANTS[name])

    stories = STORIES.values()
    assert any(judged(story, mutant).figures != judged(story).figures for story in stories)
