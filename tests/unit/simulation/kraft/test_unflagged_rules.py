"""Rules that no planted bug switches off: without each of them, simulated worlds turn red."""

from collections.abc import Callable

import pytest

from splitbrain.harness.campaign.sweep.trial import Trial, draw
from splitbrain.harness.run.world.simulate import simulate
from splitbrain.nodes.quorum.effects import SendAnswer, SendRequest
from splitbrain.nodes.quorum.log_positions import LogPositions
from splitbrain.nodes.quorum.outbox import Outbox
from splitbrain.simulation.kraft.system import KraftSimulation

Patch = pytest.MonkeyPatch


def messages_are_not_held(patch: Patch) -> None:
    def mutant(self: Outbox, message: SendRequest | SendAnswer) -> None:
        self.emit(message)

    patch.setattr(Outbox, "send", mutant)


def fetches_promise_what_is_not_flushed(patch: Patch) -> None:
    patch.setattr(LogPositions, "settled", property(lambda _: True))


#: Mutant, and who sees it first.
MUTANTS: list[tuple[Callable[[Patch], None], str]] = [
    (messages_are_not_held, "INV-05"),
    (fetches_promise_what_is_not_flushed, "INV-07"),
]


@pytest.mark.parametrize(
    ("mutate", "invariant"), MUTANTS, ids=[mutant[0].__name__ for mutant in MUTANTS]
)
def test_the_world_misses_the_rule(
    monkeypatch: Patch, mutate: Callable[[Patch], None], invariant: str
) -> None:
    mutate(monkeypatch)
    outcomes = (simulate(draw(seed, Trial(system="kraft")), KraftSimulation()) for seed in range(5))
    violations = (outcome.violation for outcome in outcomes if outcome.violation is not None)
    first = next(violations, None)
    assert first is not None
    assert first.invariant == invariant
