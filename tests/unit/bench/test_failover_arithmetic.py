"""Which acknowledgement ends a failover; each rule has a mutant that counts a wrong one."""

import msgspec
import pytest

from bench import failover_arithmetic as arithmetic
from bench.failover_arithmetic import (
    Acknowledgement,
    Failover,
    TimedFault,
    by_new_leader,
    ends,
    failover,
    leader_changed_before,
    quantile,
    spread,
)
from splitbrain.contracts.names import NodeName
from splitbrain.contracts.system import LeaderView

MS = 1_000_000
OLD, NEW = NodeName("n1"), NodeName("n2")
FAULT = TimedFault(leader=OLD, epoch_before=4, asked_ns=1_000 * MS, returned_ns=1_050 * MS)


def acknowledgement(
    invoked_ms: float, acknowledged_ms: float, epoch: int | None = 5, *, node: NodeName = NEW
) -> Acknowledgement:
    return Acknowledgement(
        int(invoked_ms * MS), int(acknowledged_ms * MS), node, epoch, follows=True
    )


def seen(node: NodeName, leader: NodeName | None, epoch: int | None) -> Acknowledgement:
    """Of a system whose writes tell no epoch."""
    return msgspec.structs.replace(
        acknowledgement(1_200, 1_210, None, node=node), view=LeaderView(leader, epoch)
    )


#: What really happens around a fault, in the order of arrival; only the last one counts.
STREAM = [
    acknowledgement(990, 995, 4, node=OLD),
    # Acknowledged by the leader that dies, while it is being killed.
    acknowledgement(1_005, 1_010, 4, node=OLD),
    # Invoked before the fault, appended by the new leader.
    acknowledgement(998, 1_150, 5),
    acknowledgement(1_190, 1_200, 5),
]


def test_the_first_write_of_the_new_leader_that_was_invoked_after_the_fault_counts() -> None:
    assert [ends(one, FAULT) for one in STREAM] == [False, False, False, True]
    assert failover(STREAM, FAULT) == Failover(50.0, 200.0, 200.0)


@pytest.mark.parametrize(
    ("rule", "wrong_ms"), [("invoked_after", 150.0), ("by_new_leader", 10.0)], ids=str
)
def test_without_one_of_the_rules_an_earlier_write_would_count(
    monkeypatch: pytest.MonkeyPatch, rule: str, wrong_ms: float
) -> None:
    monkeypatch.setattr(arithmetic, rule, lambda *_: True)
    result = failover(STREAM, FAULT)
    assert result is not None
    assert result.any_writer_ms == wrong_ms


def test_a_write_invoked_in_the_moment_of_the_fault_counts() -> None:
    assert ends(acknowledgement(1_000, 1_100), FAULT)


def test_the_old_leader_in_its_old_epoch_never_ends_a_failover() -> None:
    assert not ends(acknowledgement(1_500, 1_501, 4, node=OLD), FAULT)


def test_the_old_leader_elected_anew_does() -> None:
    assert ends(acknowledgement(1_500, 1_501, 6, node=OLD), FAULT)


@pytest.mark.parametrize(
    ("one", "counts"),
    [
        (seen(NEW, NEW, 5), True),
        # The old leader goes on in its old epoch, cut off from those who know better.
        (seen(OLD, OLD, 4), False),
        # It acknowledged, and somebody else leads the new epoch.
        (seen(OLD, NEW, 5), False),
        (seen(NEW, None, 5), False),
        (seen(NEW, NEW, None), False),
        (acknowledgement(1_200, 1_210, None), False),
    ],
)
def test_without_epochs_the_node_that_acknowledged_must_lead_a_new_one(
    one: Acknowledgement, counts: bool
) -> None:
    assert by_new_leader(one, FAULT) == counts


def test_it_is_over_when_a_client_that_follows_has_written_too() -> None:
    pinned = msgspec.structs.replace(acknowledgement(1_100, 1_110), follows=False)
    assert failover([pinned], FAULT) is None
    assert failover([pinned, acknowledgement(1_120, 1_130)], FAULT) == Failover(50.0, 110.0, 130.0)


def test_a_leader_deposed_before_the_fault_spoils_the_measurement() -> None:
    assert not leader_changed_before(STREAM, FAULT)
    assert leader_changed_before([acknowledgement(980, 999, 5)], FAULT)


def test_quantiles_are_values_that_occurred() -> None:
    values = [float(number) for number in range(100, 0, -1)]
    assert (quantile(values, 0.5), quantile(values, 0.99)) == (50.0, 99.0)
    assert quantile([3.0], 0.01) == 3.0


def test_p99_of_few_values_is_the_worst_of_them() -> None:
    assert spread([1.0, 5.0, 2.0]) == arithmetic.Spread(2.0, 5.0, 5.0)


def test_no_values_have_no_quantile() -> None:
    with pytest.raises(ValueError, match="no values"):
        quantile([], 0.5)
