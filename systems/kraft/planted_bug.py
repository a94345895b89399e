"""What is said of a planted bug.

A source is a report that was read, of this mechanism or of its nearest kin in another system;
"splitbrain" where none was found.
"""

from typing import Literal

import msgspec

#: Who must see it: the clients' outcomes and the nodes' ends (a node that stops by itself, logs
#: that differ), an invariant of the running quorum, or the demand for progress.
BugKind = Literal["outcome", "invariant", "liveness"]


class PlantedBug(msgspec.Struct, frozen=True):
    """One planted bug, in words for people."""

    #: Kebab case, as on the command line.
    name: str
    #: One sentence.
    mechanism: str
    source: str
    #: The fault, and what must be under way when it strikes.
    exposed_by: str
    kind: BugKind
    #: Why no plan on a real runtime shows it; empty where one does (``bench/suites/planted.toml``).
    unseen_because: str = ""
    #: The state machine that it is a bug of; None for the quorum's, which every node has.
    state_machine: Literal["metadata"] | None = None
