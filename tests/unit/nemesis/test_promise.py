"""When a voter may forget what it had flushed, and when not."""

from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import combinations

import msgspec
import pytest

from splitbrain.contracts.fault import ActualFault
from splitbrain.contracts.names import NodeName
from splitbrain.nemesis import promise
from splitbrain.nemesis.kinds import fault_kind
from splitbrain.nemesis.promise import (
    NEVER,
    Demand,
    VoterReport,
    demand_of,
    majority_of,
    reason_against,
    reason_unknown,
    reason_unmet,
)

N1, N2, N3, N4, N5 = FIVE = tuple(NodeName(f"n{number}") for number in range(1, 6))
THREE = (N1, N2, N3)
#: Has told of a commit up to 10 in epoch 4, and has all of it on its disk.
WHOLE = VoterReport(epoch=4, end=10, committed=10, held=10, held_epoch=4)


def told(nodes: Sequence[NodeName], **others: VoterReport) -> dict[NodeName, VoterReport]:
    return {node: others.get(node, WHOLE) for node in nodes}


def against(kind: str, hit: NodeName, forgot: Collection[NodeName] = ()) -> str | None:
    actual = ActualFault(index=0, kind=kind, target=hit, nodes=(hit,))
    return reason_against(fault_kind(kind), actual, THREE, forgot)


# --- before the fault ---------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["wipe", "flip", "truncate"])
def test_one_of_three_may_come_to_forget(kind: str) -> None:
    assert against(kind, N1) is None
    assert against(kind, N1, forgot=[N1]) is None


def test_a_majority_never_forgets() -> None:
    reason = against("wipe", N1, forgot=[N3])
    assert reason == "beyond the promise: n1, n3 would have forgotten, a majority"


def test_of_four_voters_two_never_forget_though_they_are_no_majority() -> None:
    actual = ActualFault(index=0, kind="wipe", target="n1", nodes=(N1,))
    nodes = (N1, N2, N3, N4)
    reason = reason_against(fault_kind("wipe"), actual, nodes, [N2])
    assert reason is not None
    assert "no majority is left" in reason


def test_a_lie_that_nobody_can_tell_never_strikes() -> None:
    assert "nobody can tell" in str(against("restore", N1))


def test_a_fault_that_makes_nobody_forget_always_strikes() -> None:
    assert against("kill", N1, forgot=THREE) is None
    assert against("power", N1, forgot=THREE) is None


def test_where_a_voter_tells_nothing_nobody_may_forget() -> None:
    some = {N1: WHOLE, N2: WHOLE}
    reason = reason_unknown(THREE, some)
    assert reason is not None
    assert "n3 never told" in reason
    untold = {**some, N3: msgspec.structs.replace(WHOLE, held=NEVER)}
    assert reason_unknown(THREE, untold) == reason
    assert reason_unknown(THREE, told(THREE)) is None


# --- once its nodes are down --------------------------------------------------------------------


def test_what_is_demanded_reaches_over_all_that_is_committed_and_all_other_logs() -> None:
    ahead = msgspec.structs.replace(WHOLE, end=14)
    knows = msgspec.structs.replace(WHOLE, committed=12)
    votes = msgspec.structs.replace(WHOLE, epoch=6)
    assert demand_of(THREE, [N1], told(THREE, n2=ahead)) == Demand(epoch=4, offset=14)
    # By the word of the node hit its leader may commit all that it has.
    assert demand_of(THREE, [N1], told(THREE, n1=knows)) == Demand(epoch=4, offset=12)
    # A vote that only the node hit has told of counts too.
    assert demand_of(THREE, [N1], told(THREE, n1=votes)) == Demand(epoch=6, offset=10)
    # Of its own log the node hit commits nothing any more.
    assert demand_of(THREE, [N1], told(THREE, n1=ahead)) == Demand(epoch=4, offset=10)


DEMAND = Demand(epoch=4, offset=10)
SHORT = msgspec.structs.replace(WHOLE, held=9)
OLD = msgspec.structs.replace(WHOLE, held_epoch=3)


def test_two_of_three_hold_all_so_the_third_may_forget() -> None:
    assert reason_unmet(DEMAND, THREE, [N1], told(THREE)) is None


@pytest.mark.parametrize("other", [SHORT, OLD, VoterReport()], ids=["short", "old", "silent"])
def test_one_of_three_that_does_not_hold_all_keeps_the_others_from_forgetting(
    other: VoterReport,
) -> None:
    reason = reason_unmet(DEMAND, THREE, [N1], told(THREE, n2=other))
    assert reason is not None
    assert "n2 did not tell" in reason
    assert "offset 10 in epoch 4" in reason


def test_of_five_one_may_lack_something_beside_one_that_forgets_and_no_more() -> None:
    assert reason_unmet(DEMAND, FIVE, [N1], told(FIVE, n2=SHORT)) is None
    assert reason_unmet(DEMAND, FIVE, [N1], told(FIVE, n2=SHORT, n3=OLD)) is not None
    # A voter that has forgotten before is not asked what it holds now.
    assert reason_unmet(DEMAND, FIVE, [N1, N4], told(FIVE)) is None
    assert reason_unmet(DEMAND, FIVE, [N1, N4], told(FIVE, n2=SHORT)) is not None


# --- the rule against what it is for -------------------------------------------------------------

Unmet = Callable[
    [Demand, Sequence[NodeName], Collection[NodeName], Mapping[NodeName, VoterReport]], str | None
]


def loses(unmet: Unmet) -> bool:
    """Whether a cluster loses what is committed although the rule has let voters forget.

    All ways in which records 0 to 2 may lie on the disks of three voters, the committed ones on a
    majority of them; one forgets if it may; then any majority elects the longest log in it.
    """
    lengths = [(a, b, c) for a in range(3) for b in range(3) for c in range(3)]
    for held in lengths:
        committed = sorted(held)[len(held) - majority_of(THREE)]
        state = {
            node: VoterReport(epoch=4, end=end, committed=committed, held=min(end, committed),
                            held_epoch=4)
            for node, end in zip(THREE, held, strict=True)
        }  # fmt: skip
        for hit in THREE:
            demand = demand_of(THREE, [hit], state)
            if unmet(demand, THREE, [hit], state) is not None:
                continue
            after = {node: 0 if node == hit else one.end for node, one in state.items()}
            if any(
                max(after[node] for node in electing) < committed
                for electing in combinations(THREE, majority_of(THREE))
            ):
                return True
    return False


def test_whoever_is_elected_after_a_voter_forgot_holds_all_that_was_committed() -> None:
    assert not loses(reason_unmet)


def test_a_rule_that_asks_for_one_holder_less_loses_something(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(promise, "majority_of", lambda nodes: len(nodes) // 2 + 2)
    assert loses(reason_unmet)


def test_a_rule_that_counts_heads_alone_loses_something() -> None:
    def heads(
        _demand: Demand, nodes: Sequence[NodeName], forgetful: Collection[NodeName], _told: object
    ) -> str | None:
        return None if len(forgetful) < majority_of(nodes) else "a majority"

    assert loses(heads)


def test_a_rule_that_does_not_look_how_far_they_hold_loses_something() -> None:
    def anywhere(
        demand: Demand,
        nodes: Sequence[NodeName],
        forgetful: Collection[NodeName],
        told: Mapping[NodeName, VoterReport],
    ) -> str | None:
        return reason_unmet(msgspec.structs.replace(demand, offset=0), nodes, forgetful, told)

    assert loses(anywhere)
