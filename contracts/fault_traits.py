"""Traits of the fault kinds of run folders and lakes that recorded none, by the kinds' names.

What is recorded comes first: this table serves what was made before faults told their traits, when
``stop`` and ``disk-full`` were names of sweeps. A test holds it to what the kinds themselves say.
"""

from collections.abc import Mapping
from typing import Final

from splitbrain.contracts.fault import FaultTraits

_FAILED: Final = ("fsync", "sync failed", "input/output error", "i/o error", "eio")
_CORRUPT: Final = ("corrupt", "checksum", "crc")
_CHANGED: Final = FaultTraits("at-once", _CORRUPT, stays=True)
_ROT: Final = FaultTraits("perhaps", _CORRUPT, stays=True)

TRAITS_OF_OLD: Final[Mapping[str, FaultTraits]] = {
    **dict.fromkeys(
        ("crash-loop", "kill", "power", "restart", "stop", "terminate", "wipe"),
        FaultTraits("at-once"),
    ),
    **dict.fromkeys(("cut-then-kill", "roll-back", "rolling-restart"), FaultTraits("later")),
    **dict.fromkeys(("flip", "truncate"), _CHANGED),
    **dict.fromkeys(("rot-checkpoint", "rot-identity", "rot-log", "rot-mark", "rot-state"), _ROT),
    **dict.fromkeys(("fsync-fails", "read-errors"), FaultTraits(reasons=_FAILED)),
    **dict.fromkeys(("rename-fails", "write-fails"), FaultTraits("perhaps", _FAILED)),
    "disk-error": FaultTraits("later", (*_FAILED, "read-only", "erofs")),
    **dict.fromkeys(
        ("disk-full", "full-disk"),
        FaultTraits(reasons=("disk full", "disk is full", "no space", "enospc")),
    ),
    "memory": FaultTraits(reasons=("memory",), starves=True),
    "restore": FaultTraits("later", _CORRUPT),
}
