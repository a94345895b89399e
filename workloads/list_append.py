"""Lists that are appended to and read in transactions: a list tells the order of its writes.

Each element is appended once. ``level`` is the isolation that the system promises.
"""

from typing import Final

from splitbrain.workloads.transactions import LEVELS, TransactionWorkload


class ListAppendWorkload(TransactionWorkload):
    """Parts ``["append", key, element]`` and ``["r", key, null]``."""

    name = "list-append"
    writes = "append"
    checkers: tuple[str, ...] = (f"transactions:list-append:{LEVELS[0]}", "split-brain")


WORKLOAD: Final = ListAppendWorkload
