"""The oracle looks on, finds what planted bugs do, and changes nothing."""

import pytest

from splitbrain.contracts.scenario import Scenario, ViolationError
from splitbrain.harness.campaign.sweep.trial import Trial, draw
from splitbrain.harness.run.world.simulate import simulate
from splitbrain.nodes.storage.layout import log_folder, segment_name
from splitbrain.simulation.kraft.all_invariants import INVARIANTS
from splitbrain.simulation.kraft.system import KraftSimulation
from tests.unit.simulation.kraft.small_quorum import Quorum

#: Bug, and the invariant that sees it first.
RED = [
    ("vote-not-persisted", "INV-05"),
    ("ack-before-fsync", "INV-07"),
    ("prior-epoch-commit", "INV-09"),
    ("ack-before-commit", "INV-12"),
]


@pytest.mark.parametrize(("bug", "invariant"), RED)
def test_a_planted_bug_is_seen(bug: str, invariant: str) -> None:
    trial = Trial(system="kraft", bugs=(bug,))
    outcomes = (simulate(draw(seed, trial), KraftSimulation()) for seed in range(10))
    violations = (outcome.violation for outcome in outcomes if outcome.violation is not None)
    first = next(violations, None)
    assert first is not None
    assert first.invariant == invariant


def test_a_run_is_the_same_whoever_watches() -> None:
    scenario = Scenario(system="kraft", seed=3, load_us=500_000)
    watched = simulate(scenario, KraftSimulation())
    everybody = frozenset(invariant.id for invariant in INVARIANTS)
    unwatched = simulate(scenario, KraftSimulation(), muted=everybody)
    assert watched.violation is None
    assert (watched.trace_hash, watched.steps) == (unwatched.trace_hash, unwatched.steps)
    assert watched.figures == unwatched.figures


def flip(quorum: Quorum, position: int) -> str:
    """A follower's first batch rots at this byte, below its durable mark, and it starts again."""
    host = quorum.followers[0].host
    quorum.oracle.harmed(host, "bytes rotted")
    host.disk.rot(log_folder(host.folder) / segment_name(0), position)
    quorum.restart(host.name)
    return host.ended or "started"


#: Of the leader epoch in a batch's header, and of its records.
EPOCH, RECORDS = 15, 66


@pytest.mark.parametrize("position", [EPOCH, RECORDS])
def test_a_node_that_refuses_rotten_bytes_is_no_finding(position: int) -> None:
    assert flip(Quorum(), position).startswith("could not start")


@pytest.mark.parametrize(
    ("bug", "position"),
    [
        ("corruption-as-torn-tail", RECORDS),
        ("checksum-not-verified", RECORDS),
        ("epoch-rot-unnoticed", EPOCH),
    ],
)
def test_a_node_that_begins_with_rotten_bytes_is_one(bug: str, position: int) -> None:
    quorum = Quorum(bugs=(bug,))
    with pytest.raises(ViolationError) as caught:
        flip(quorum, position)
    assert caught.value.invariant in ("INV-03", "INV-15")
