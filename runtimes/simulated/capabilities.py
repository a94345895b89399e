"""What plans may ask of simulated nodes; scenarios may ask for more by names of their own."""

from contracts.runtime import Capability

#: Faults of plans that a simulated world carries out.
CAPABILITIES: frozenset[Capability] = frozenset(
    {
        "partition",
        "kill",
        "pause",
        "terminate",
        "delay",
        "reset",
        "power",
        "full-disk",
        "disk-stall",
        "disk-error",
        "file-change",
        "wipe",
        "clock",
    }
)
