"""Equipment of nodes for the faults of a plan, and for no others.

Disks of their own, clocks and control groups cost something and change how nodes run, so that a
run without such faults has none of them.
"""

from collections.abc import Set as AbstractSet

import msgspec

from splitbrain.contracts.runtime import DISK_CAPABILITIES, Capability, DeploymentSpec


def equipped(spec: DeploymentSpec, needed: AbstractSet[Capability]) -> DeploymentSpec:
    """Return the same deployment with what these capabilities must have prepared."""
    if needed & DISK_CAPABILITIES:
        spec = msgspec.structs.replace(spec, disks="own")
    if "clock" in needed:
        spec = msgspec.structs.replace(spec, clocks="own")
    if needed & {"cpu", "memory"}:
        spec = msgspec.structs.replace(spec, limits="own")
    return spec
