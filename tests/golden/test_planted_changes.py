"""Each golden file shows a change that is planted into its machine, at its first line and story.

The changes are made to the machines of today; who rewrites one plants its changes anew.
"""

from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import msgspec
import pytest

from splitbrain.contracts.fault import ActualFault, Fault
from splitbrain.harness.run.load.reading import Patience
from splitbrain.harness.run.load.seat import Processes
from splitbrain.nemesis.acts import Act
from splitbrain.nemesis.effects import AreBack, Effect
from splitbrain.nemesis.fault_kind import Course, FaultKind
from splitbrain.nemesis.fault_machine import FaultMachine
from splitbrain.nemesis.holds import Holds
from splitbrain.nodes.transport.kafka_codec import KafkaCodec
from splitbrain.nodes.transport.link_machine import LinkMachine
from splitbrain.nodes.transport.peer_link import PeerLink
from splitbrain.nodes.transport.peer_versions import PeerVersions
from splitbrain.nodes.wire.api_versions import own_versions
from tests.golden.goldens import Goldens, difference
from tests.golden.holds_table import table
from tests.golden.link_engine import on_the_machine
from tests.golden.link_stories import LINK_STORIES
from tests.golden.load_engine import loaded
from tests.golden.load_rendering import rendered_load
from tests.golden.load_stories import LOAD_STORIES
from tests.golden.nemesis_engine import carried_out
from tests.golden.nemesis_pairs import pairs_of
from tests.golden.nemesis_rendering import rendered
from tests.golden.nemesis_stories import stories_of
from tests.golden.test_load import stream_lines
from tests.golden.test_replay import replay_lines

Plant = Callable[[pytest.MonkeyPatch], None]


def told(name: str, lines: list[str]) -> str:
    """The message of the comparison of these lines, which must differ."""
    with pytest.raises(AssertionError) as caught:
        Goldens(Path(__file__).parent).compare(name, lines)
    message = str(caught.value)
    assert f"tests/golden/{name} differs in line " in message
    assert "--rewrite-goldens" in message
    return message


# --- the nemesis --------------------------------------------------------------------------------


def heal_the_other_way_round(patch: pytest.MonkeyPatch) -> None:
    course_of = FaultKind.course_of

    def reversed_heal(kind: FaultKind, *rest: Any) -> Course:
        course = course_of(kind, *rest)
        return msgspec.structs.replace(course, heal=course.heal[::-1])

    patch.setattr(FaultKind, "course_of", reversed_heal)


def let_nodes_stay_excused(patch: pytest.MonkeyPatch) -> None:
    step = FaultMachine.step

    def without(machine: FaultMachine, *rest: Any, is_ending: bool) -> Effect | None:
        effect = step(machine, *rest, is_ending=is_ending)
        while isinstance(effect, AreBack):
            effect = step(machine, None, rest[1], is_ending=is_ending)
        return effect

    patch.setattr(FaultMachine, "step", without)


def look_less_often(patch: pytest.MonkeyPatch) -> None:
    patch.setattr("splitbrain.harness.run.evidence._INTERVAL_S", 0.03)


def forget_who_is_beside(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Holds, "others", lambda *_: ())


@pytest.mark.parametrize(
    ("plant", "kind", "story"),
    [
        (heal_the_other_way_round, "memory", "in order, leader"),
        (let_nodes_stay_excused, "kill", "in order, leader"),
        (look_less_often, "pause", "in order, leader"),
        (forget_who_is_beside, "flap", "then kill of n2"),
    ],
)
def test_a_change_of_the_nemesis_is_shown(
    plant: Plant, kind: str, story: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(monkeypatch)
    stories = [*stories_of(kind), *pairs_of(kind)]
    lines = [line for one in stories for line in rendered(carried_out(one))]
    assert f"in the story '{story}: " in told(f"nemesis/{kind}.txt", lines)


# --- the load -----------------------------------------------------------------------------------


def use_a_retired_process_again(patch: pytest.MonkeyPatch) -> None:
    fresh = Processes.fresh

    def first_again(processes: Processes, slot: int) -> int:
        fresh(processes, slot)
        return slot

    patch.setattr(Processes, "fresh", first_again)


def catch_up_slower(patch: pytest.MonkeyPatch) -> None:
    patch.setattr("splitbrain.harness.run.load.timetable.CATCH_UP_FACTOR", 2)


def take_slow_failures_for_quick_ones(patch: pytest.MonkeyPatch) -> None:
    patch.setattr("splitbrain.harness.run.load.seat.TIMED_OUT_SHARE", Fraction(19, 20))


def wait_longer_for_clients(patch: pytest.MonkeyPatch) -> None:
    patch.setattr("splitbrain.harness.run.clients._CLIENT_GRACE_S", 0.6)


def try_less_often(patch: pytest.MonkeyPatch) -> None:
    fewer = {"leader": Patience(4, 1), "pinned": Patience(1, 3)}
    patch.setattr("splitbrain.harness.run.load.reading.PATIENCE", fewer)


@pytest.mark.parametrize(
    ("plant", "family", "story"),
    [
        (use_a_retired_process_again, "outcomes", "info, quick"),
        (catch_up_slower, "courses", "a slot catches up after a lost second and a half"),
        (take_slow_failures_for_quick_ones, "outcomes", "fail, at nine tenths of the timeout"),
        (wait_longer_for_clients, "outcomes", "ok, right after the deadline"),
        (try_less_often, "final_reads", "final reads: settled at the last try"),
    ],
)
def test_a_change_of_the_load_is_shown(
    plant: Plant, family: str, story: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(monkeypatch)
    lines = [line for one in LOAD_STORIES[family] for line in rendered_load(loaded(one))]
    assert f"in the story '{story}'" in told(f"load/{family}.txt", lines)


def test_a_change_of_the_operations_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("splitbrain.workloads.register.DOMAIN", 6)
    message = told("operations/register.txt", stream_lines("register"))
    assert "in the story 'register values=small seed 1, 5 slots, readers []'" in message


# --- the link -----------------------------------------------------------------------------------


def keep_the_connection_of_a_request_whose_time_is_over(patch: pytest.MonkeyPatch) -> None:
    drop = LinkMachine._drop

    def forget_the_request_alone(link: LinkMachine[Any, Any, Any]) -> None:
        outstanding = link._outstanding
        if not link._is_connected or outstanding is None:
            drop(link)
            return
        link._outstanding = None
        link._owner.failed(link._peer, outstanding.correlation, "time over", refused=False)

    patch.setattr(LinkMachine, "_time_over", forget_the_request_alone)


def connect_again_at_once(patch: pytest.MonkeyPatch) -> None:
    patch.setattr("splitbrain.nodes.transport.link_machine.back_off_us", lambda *_: 0)


def count_an_attempt_before_its_pause(patch: pytest.MonkeyPatch) -> None:
    connect = PeerLink.connect

    def count_and_connect(link: PeerLink[Any, Any], pause_us: int) -> None:
        link._machine._failed_attempts_count += 1
        connect(link, pause_us)

    patch.setattr(PeerLink, "connect", count_and_connect)
    patch.setattr(LinkMachine, "attempted", lambda _: None)


def refuse_while_the_owner_sends(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(PeerLink, "call_soon", lambda _, action: action())


def take_versions_for_those_of_all(patch: pytest.MonkeyPatch) -> None:
    known = PeerVersions("all")
    known._answer = own_versions()
    patch.setattr(KafkaCodec, "peer_versions", lambda _: known)


@pytest.mark.parametrize(
    ("plant", "family", "story"),
    [
        (keep_the_connection_of_a_request_whose_time_is_over, "answers", "never, thrice"),
        (connect_again_at_once, "back_off", "nobody listens"),
        (
            count_an_attempt_before_its_pause,
            "back_off",
            "given up in the pause it is no attempt",
        ),
        (refuse_while_the_owner_sends, "versions", "none for this request"),
        (take_versions_for_those_of_all, "versions", "told in parts"),
    ],
)
def test_a_change_of_the_link_is_shown(
    plant: Plant, family: str, story: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(monkeypatch)
    stories = LINK_STORIES[f"{family}_quorum"]
    lines = [line for one in stories for line in on_the_machine(one)]
    assert f"in the story '{story}: quorum'" in told(f"link/{family}_quorum.txt", lines)


# --- what faults hold, and replays --------------------------------------------------------------


class _Careless(Holds):
    """Lets go whatever others hold."""

    def _release(self, fault: int, act: Act, held: Any) -> tuple[Act, ...]:
        super()._release(fault, act, held)
        return (act,)


def test_a_change_of_what_faults_hold_is_shown() -> None:
    message = told("holds/pairs.txt", list(table(_Careless)))
    assert "in the story 'black-hole and then another'" in message


def test_a_change_of_the_replay_is_shown(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def unpinned(schedule: tuple[Fault, ...], _actual: tuple[ActualFault, ...]) -> Any:
        return schedule

    monkeypatch.setattr("splitbrain.harness.campaign.replaying.recorded.pin", unpinned)
    lines = [line for kind in ("black-hole", "bridge") for line in replay_lines(kind, tmp_path)]
    message = told("replay/kinds_b-c.txt", lines)
    assert "in the story 'black-hole, in order, leader: " in message


def test_a_line_too_many_or_too_few_is_shown_with_the_story_before_it() -> None:
    golden = ["## one", "a", "## two", "b"]
    assert "differs in line 5, in the story 'two'" in difference("x.txt", golden, [*golden, "c"])
    assert "differs in line 4, in the story 'two'" in difference("x.txt", golden, golden[:3])
    assert "  golden: b\n  now:    (no more lines)\n" in difference("x.txt", golden, golden[:3])
