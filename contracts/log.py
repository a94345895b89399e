"""Logs of the workload ``log``."""

from typing import Final

#: Name of the workload.
LOG: Final = "log"
#: Logs, named by their numbers.
LOGS: Final = tuple(map(str, range(4)))
