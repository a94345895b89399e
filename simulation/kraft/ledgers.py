"""The ledger of a world, by what stands above its nodes' logs."""

from splitbrain.contracts.scenario import Scenario
from splitbrain.simulation.kraft.layers import state_machine_of
from splitbrain.simulation.kraft.ledger import Ledger
from splitbrain.simulation.kraft.metadata_ledger import MetadataLedger


def ledger_of(scenario: Scenario) -> Ledger | MetadataLedger:
    """An empty ledger; raises UsageError where the scenario names no state machine."""
    return Ledger() if state_machine_of(scenario) == "registers" else MetadataLedger()
