"""Names the record of the system's own that a change of a file has hit.

Where a byte lies says little to who knows the system's log; its adapter can tell which record that
was, from the bytes before it, which no change touches. Must never make a fault fail: a record that
cannot be named is left unnamed.
"""

from collections.abc import Callable, Sequence
from typing import Final

from splitbrain.contracts.errors import HarnessError
from splitbrain.contracts.runtime import Runtime
from splitbrain.harness.run.acting import Changed, Record

#: Of the system's adapter: given a file and its bytes up to the change, the record that follows.
RecordAt = Callable[[str, bytes], str | None]

#: More than this is not read for the sake of a name.
_READ_BYTES_MAX: Final = 16 << 20


def records_hit(runtime: Runtime, record_at: RecordAt, records: Sequence[Record]) -> list[str]:
    """Return a clause for each changed file whose record can be named."""
    named: list[str] = []
    for one in records:
        if not isinstance(one, Changed) or one.change is None:
            continue
        file, offset = one.change.file, one.change.offset
        if offset > _READ_BYTES_MAX:
            continue
        try:
            before = runtime.disks.read(one.node, file, 0, offset) if offset else b""
        except HarnessError:
            continue
        hit = record_at(file, before)
        if hit is not None:
            named.append(f"{one.node}: that is {hit}")
    return named
