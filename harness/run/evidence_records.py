"""Evidence of the runtime's own records: canaries of power cuts, bytes of changed files."""

from collections.abc import Sequence

from splitbrain.contracts.arms import PowerLoss
from splitbrain.contracts.names import NodeName
from splitbrain.contracts.runtime import Runtime
from splitbrain.harness.run.acting import Changed, Record


def canaries_tell(node: NodeName, records: Sequence[Record]) -> bool:
    """Whether the node's synced canary outlived its last power cut, and the unsynced one did not.

    Both were written right before the cut. The unsynced one alone would be gone also where the
    whole disk was, and the synced one alone would be there also where nothing was cut.
    """
    losses = [one for one in records if isinstance(one, PowerLoss) and one.node == node]
    return bool(losses) and losses[-1].synced_is_there and not losses[-1].unsynced_is_there


def file_reads(runtime: Runtime, changed: Changed) -> bool:
    """Whether a re-read of the node's file sees what it was changed to.

    Raises:
        HarnessError: it cannot be read.
    """
    change = changed.change
    if change is None:
        return False
    wanted = bytes.fromhex(change.after)
    there = runtime.disks.read(changed.node, change.file, change.offset, max(1, len(wanted)))
    return there[: len(wanted)] == wanted if wanted else not there
