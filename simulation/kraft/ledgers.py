"""The ledger of a world, by what stands above its nodes' logs."""

from contracts.scenario import Scenario
from simulation.kraft.layers import state_machine_of
from simulation.kraft.ledger import Ledger
from simulation.kraft.metadata_ledger import MetadataLedger


def ledger_of(scenario: Scenario) -> Ledger | MetadataLedger:
    """An empty ledger; raises UsageError where the scenario names no state machine."""
    return Ledger() if state_machine_of(scenario) == "registers" else MetadataLedger()
