"""A violation is told with the role, the faults and the leaders of its moment, as far as known."""

from collections.abc import Sequence
from typing import Any

from splitbrain.checker.anomalies.account import account_of
from splitbrain.checker.linearizability.check import check
from splitbrain.checker.verdict import CheckResult, Verdict
from splitbrain.contracts.budget import Unlimited
from splitbrain.contracts.fault import FaultEvent
from splitbrain.contracts.names import NodeName
from splitbrain.contracts.state_event import StateEvent
from splitbrain.harness.judge.circumstances import Circumstances, with_circumstances
from splitbrain.history.course import LeaderSighting
from splitbrain.history.records import PairedOperation
from tests.unit.checker.operations import operation, role

MS = 1_000_000
END = 20_000 * MS
NODES = ["n1", "n2", "n3"]


def fault(kind: str, nodes: Sequence[str], start_ms: int, end_ms: int, index: int = 0) -> Any:
    fields: dict[str, Any] = {
        "index": index,
        "kind": kind,
        "target": "leader",
        "nodes": tuple(map(NodeName, nodes)),
    }
    return [
        FaultEvent(time=start_ms * MS, phase="invoked", **fields),
        FaultEvent(time=start_ms * MS + 1, phase="verified", **fields),
        FaultEvent(time=end_ms * MS, phase="removed", **fields),
    ]


#: n2 leads epoch 1 and never learns that n1 leads epoch 2.
EVENTS: dict[str, list[StateEvent]] = {
    "n1": [role("n1", 0, "follower", 1, 1 * MS), role("n1", 1, "leader", 2, 8_000 * MS)],
    "n2": [role("n2", 0, "leader", 1, 1 * MS)],
    "n3": [role("n3", 0, "follower", 1, 1 * MS), role("n3", 1, "follower", 2, 8_001 * MS)],
}
CUT = fault("partition", ["n2"], 5_200, 15_000)


def stale(node: str = "n2", writer: str | None = "n1") -> list[PairedOperation]:
    return [
        operation("write", 3, start=10 * MS, end=20 * MS, key="r0-5", node="n2", index=0,
                  process=0),
        operation("write", 4, start=12_000 * MS, end=12_240 * MS, key="r0-5", node=writer, index=1,
                  process=1),
        operation("read", None, 3, start=12_260 * MS, end=12_269 * MS, key="r0-5", node=node,
                  index=2, process=2),
    ]  # fmt: skip


def told(
    operations: Sequence[PairedOperation], circumstances: Circumstances
) -> tuple[str, dict[str, Any]]:
    (result,) = with_circumstances(
        [check(operations, "cas-register", Unlimited())], operations, circumstances
    )
    return str(account_of(result)), result.violations[0]


def test_a_deposed_leader_that_is_cut_off_answers_an_older_state() -> None:
    account, violation = told(stale(), Circumstances(NODES, EVENTS, CUT, END))
    assert account == (
        "Stale read. n1, leader of epoch 2, acknowledged write 4 to r0-5 at 12.240 s. 29 ms later "
        "n2, cut off by `partition` since 5.2 s and still acting as leader of epoch 1, answered a "
        "read of r0-5 with 3, an older state."
    )
    older, newer = violation["overlap"]
    assert (older["node"], older["epoch"]) == ("n2", 1)
    assert (newer["node"], newer["epoch"]) == ("n1", 2)


def test_a_follower_is_told_with_the_leader_of_that_moment() -> None:
    account, violation = told(stale("n3", writer="n3"), Circumstances(NODES, EVENTS, [], END))
    assert account.endswith(
        "n3, follower in epoch 2, answered a read of r0-5 with 3, an older state. n1 led epoch 2 "
        "by then."
    )
    assert "overlap" not in violation


def test_a_fault_counts_only_for_its_nodes_and_while_it_is_in_force() -> None:
    faults = [
        *fault("pause", ["n1"], 12_000, 15_000, 1),
        *fault("delay", ["n2"], 1_000, 2_000, 2),
        *fault("kill", ["n3"], 12_000, 15_000, 3),
    ]
    account, _ = told(stale(), Circumstances(NODES, EVENTS, faults, END))
    assert "n1, leader of epoch 2 and hit by `pause` since 12.0 s, acknowledged" in account
    assert "n2, still acting as leader of epoch 1, answered" in account


def test_a_half_of_a_partition_is_not_called_cut_off() -> None:
    faults = fault("partition", ["n1", "n2"], 5_200, 15_000)
    account, _ = told(stale(), Circumstances(NODES, EVENTS, faults, END))
    assert "n2, on one side of `partition` since 5.2 s and still acting" in account


def test_without_effect_a_fault_is_not_told() -> None:
    invoked, _, removed = CUT
    account, _ = told(stale(), Circumstances(NODES, EVENTS, [invoked, removed], END))
    assert "partition" not in account


def test_a_folder_without_state_events_tells_who_was_seen_to_lead() -> None:
    sightings = [LeaderSighting(time=1_000 * MS, leader=NodeName("n1"), epoch=2)]
    account, violation = told(stale(), Circumstances(NODES, {}, CUT, END, sightings))
    assert account == (
        "Stale read. n1, seen as leader of epoch 2, acknowledged write 4 to r0-5 at 12.240 s. 29 "
        "ms later n2, cut off by `partition` since 5.2 s, answered a read of r0-5 with 3, an older "
        "state."
    )
    assert "overlap" not in violation


def test_where_nothing_is_known_the_nodes_alone_are_told() -> None:
    account, _ = told(stale(), Circumstances(NODES, {}, [], END))
    assert account == (
        "Stale read. n1 acknowledged write 4 to r0-5 at 12.240 s. 29 ms later n2 answered a read "
        "of r0-5 with 3, an older state."
    )


def test_an_operation_without_a_node_is_told_by_its_process() -> None:
    account, _ = told(stale(writer=None), Circumstances(NODES, EVENTS, CUT, END))
    assert "Write 4 to r0-5 by process 1 was acknowledged at 12.240 s." in account
    assert account.endswith("an older state. n1 led epoch 2 by then.")


def violation_of(checker: str, **found: Any) -> dict[str, Any]:
    result = CheckResult(checker, Verdict.INVALID, "", violations=(found,))
    circumstances = Circumstances(NODES, EVENTS, CUT, END)
    (joined,) = with_circumstances([result], stale(), circumstances)
    return joined.violations[0]


def test_another_checkers_violation_is_told_with_the_answer_that_it_is_about() -> None:
    found = violation_of(
        "lost-commits", kind="lost", sentence="Write 4 is gone.", operation={"index": 1}
    )
    assert found["account"] == (
        "Lost write. Write 4 is gone. n1, leader of epoch 2, acknowledged it at 12.240 s."
    )
    assert found["sentence"] == "Write 4 is gone."
    several = violation_of(
        "set-full", kind="stale", sentence="It is missing.", operations=[{"index": 2}]
    )
    assert several["account"] == (
        "Stale read. It is missing. n2, cut off by `partition` since 5.2 s and still acting as "
        "leader of epoch 1, answered it at 12.269 s. n1 led epoch 2 by then."
    )
    assert several["overlap"]


def test_two_leaders_of_one_epoch_are_told_with_what_hit_them() -> None:
    leaders = [
        {"node": node, "epoch": 2, "incarnation": 0, "start": 8_000 * MS, "end": None}
        for node in ("n1", "n2")
    ]
    found = violation_of(
        "split-brain",
        kind="two-leaders-in-one-epoch",
        sentence="n1 and n2 both led epoch 2.",
        leaders=leaders,
    )
    assert found["account"] == (
        "Split-brain. n1 and n2 both led epoch 2. n2 was cut off by `partition` since 5.2 s."
    )


def test_what_a_node_did_at_a_moment_is_told_with_that_moment() -> None:
    found = violation_of(
        "invariants", kind="INV-10", sentence="INV-10 was violated.", node="n2", time=12_269 * MS
    )
    assert found["account"] == (
        "INV-10 was violated. n2 was then cut off by `partition` since 5.2 s and still acting as "
        "leader of epoch 1. n1 led epoch 2 by then."
    )
    assert found["overlap"]
    unknown = violation_of("node-health", kind="crash", sentence="It ended.", node="n9", time=5)
    assert "account" not in unknown


def test_a_fault_that_was_never_healed_is_in_force_at_the_end_of_the_world() -> None:
    in_force = Circumstances(NODES, EVENTS, CUT[:2], END).of("n2", END + MS)
    assert in_force == ["cut off by `partition` since 5.2 s", "still acting as leader of epoch 1"]
    healed = Circumstances(NODES, EVENTS, CUT, END).of("n2", END + MS)
    assert healed == ["still acting as leader of epoch 1"]


def test_a_violation_of_odd_shape_stays_as_it_is() -> None:
    odd: dict[str, Any] = {"kind": "odd", "operation": 7, "operations": "x", "leaders": [{}]}
    assert violation_of("mine", **odd) == odd
    assert violation_of("mine", kind="odd", steps=[{"a": 1}], operation={"index": True}) is not None


def test_what_is_valid_is_left_alone() -> None:
    result = CheckResult("x", Verdict.VALID, "Fine.")
    assert with_circumstances([result], [], Circumstances(NODES, EVENTS, CUT, END)) == [result]
