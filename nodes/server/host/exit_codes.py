"""Exit codes of a node, one for each way to end that a harness must tell apart."""

from typing import Final

#: Asked to stop, and did.
STOPPED: Final = 0
#: A defect of ours; standard error has the traceback.
DEFECT: Final = 70
#: The replica refused to go on: it could have broken a promise.
HALTED: Final = 71
#: A write or an fsync failed; what is on the disk is not known.
DISK_FAILED: Final = 74
#: The data folder holds what this node cannot have written.
CORRUPT: Final = 75
#: Configuration, data folder or listeners cannot be used as they are.
UNUSABLE: Final = 78
