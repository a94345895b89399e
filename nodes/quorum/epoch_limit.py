"""The limit of epochs.

An epoch has 31 bits on the wire and on disk, and it never falls: whoever led a quorum into the last
one would have ended its elections for good. So nobody enters the highest 2^20, and as many below
them are entered in small steps only: whatever epoch a peer names, there are elections left (ten a
second take seven years to come there). A node that is among the highest by what lies on its disk
may follow there, and does not stand.
"""

from typing import Final

from splitbrain.nodes.quorum.identifiers import Epoch

#: The highest that the wire and the files can say.
EPOCH_MAX: Final = Epoch(2**31 - 1)
#: The highest that is ever entered.
LAST_EPOCH: Final = Epoch(EPOCH_MAX - 2**20)
#: Up to here a node may be led in one step, such as one that was away for long.
_FAR_EPOCH: Final = Epoch(EPOCH_MAX - 2**21)
#: How far a step may go from here on: so many elections a node may have missed.
_STEP_COUNT_MAX: Final = 2**10


def highest_from(present: Epoch) -> Epoch:
    """The highest epoch that may be entered from the present one; that itself where none may."""
    reachable = min(max(_FAR_EPOCH, present) + _STEP_COUNT_MAX, LAST_EPOCH)
    return Epoch(max(reachable, present))


def may_stand(present: Epoch) -> bool:
    """Whether there is an epoch to stand in after the present one."""
    return present < LAST_EPOCH
