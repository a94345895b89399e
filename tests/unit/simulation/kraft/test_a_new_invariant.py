"""An invariant is its class and a line in the list of all."""

from typing import Any

import pytest

from splitbrain.contracts.scenario import ViolationError
from splitbrain.nodes.quorum.effects import AdvanceHighWatermark
from splitbrain.simulation.kraft import oracle
from splitbrain.simulation.kraft.all_invariants import INVARIANTS
from splitbrain.simulation.kraft.ghost import Machine
from splitbrain.simulation.kraft.invariants import Invariant
from tests.unit.simulation.kraft.small_quorum import Quorum


class NothingIsCommitted(Invariant):
    """No node ever takes a record for committed."""

    id = "INV-00"
    after_effects = (AdvanceHighWatermark,)

    def after(self, machine: Machine, effect: Any) -> None:
        if effect.offset > 0:
            raise self.violated(f"n{machine.host.node_id} commits below {effect.offset}", machine)


@pytest.fixture(autouse=True)
def dummy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(oracle, "INVARIANTS", (*INVARIANTS, NothingIsCommitted))


def test_a_new_invariant_watches_every_world() -> None:
    with pytest.raises(ViolationError, match="commits below") as caught:
        Quorum()
    assert caught.value.invariant == "INV-00"


def test_a_new_invariant_is_muted_by_its_id() -> None:
    Quorum(frozenset({"INV-00"}))
