"""Names of the session guarantees, and what an operation of a register leaves behind."""

from collections.abc import Hashable
from typing import Final

from splitbrain.checker.evidence import cas_succeeded
from splitbrain.checker.models.model import freeze, is_list_of
from splitbrain.history.records import PairedOperation

MONOTONIC_READS: Final = "monotonic-reads"
READ_YOUR_WRITES: Final = "read-your-writes"


class _Nothing:
    """No value at all, as opposed to null."""


NOTHING: Final = _Nothing()


def written_by(operation: PairedOperation) -> Hashable:
    """The value that an operation writes, or may have written; ``NOTHING`` for none."""
    if operation.f == "write":
        return freeze(operation.argument)
    if operation.f == "cas" and is_list_of(operation.argument, 2):
        expected, new = (freeze(value) for value in operation.argument)
        happened = operation.type == "info" or cas_succeeded(operation.result)
        if happened and expected != new:
            return new
    return NOTHING
