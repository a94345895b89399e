"""Lists that are appended to and read in transactions: a list tells the order of its writes.

Each element is appended once. ``level`` is the isolation that the system promises.
"""

from typing import Final

from splitbrain.workloads.transactions import TransactionWorkload, checkers_of


class ListAppendWorkload(TransactionWorkload):
    """Parts ``["append", key, element]`` and ``["r", key, null]``."""

    name = objects = "list-append"
    writes = "append"
    checkers: tuple[str, ...] = checkers_of("list-append")


WORKLOAD: Final = ListAppendWorkload
