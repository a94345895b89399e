"""After the heal every kind of operation must get through: reads alone are no progress (INV-40)."""

import pytest

from splitbrain.contracts.scenario import LoadOptions, RecoveryOptions, Scenario
from splitbrain.harness.run.world.simulate import simulate
from splitbrain.nodes.registers.machine import Applied
from splitbrain.nodes.server.registers.proposals import Proposals
from splitbrain.simulation.kraft.system import KraftSimulation

CALM = Scenario(
    system="kraft",
    seed=1,
    load=LoadOptions(clients=3, rate=100.0),
    load_us=500_000,
    recovery=RecoveryOptions(patience_us=2_000_000),
)


def test_a_quorum_that_answers_everything_makes_progress() -> None:
    assert simulate(CALM, KraftSimulation()).violation is None


@pytest.mark.parametrize("mute", ["write", "cas"])
def test_a_kind_that_is_never_acknowledged_is_no_progress(
    mute: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    applied = Proposals.applied

    def mutant(self: Proposals, offset: int, epoch: int, result: Applied | None) -> None:
        waiting = self._appended.get(offset, [])
        self._appended[offset] = [one for one in waiting if one.request.kind != mute]
        applied(self, offset, epoch, result)

    monkeypatch.setattr(Proposals, "applied", mutant)
    violation = simulate(CALM, KraftSimulation()).violation
    assert violation is not None
    assert violation.invariant == "INV-40"
    assert f"no {mute} that was invoked after the heal" in violation.problem
