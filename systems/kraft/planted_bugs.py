"""The planted bugs of our nodes, in words for people. The nodes themselves know only the names."""

from collections.abc import Mapping
from typing import Final

from nodes.quorum.bugs import PlantedBugs

_SENTENCES: Final[Mapping[str, str]] = {
    "vote-not-persisted": "A voter answers before its vote is durable, and a restart forgets it.",
    "ack-before-fsync": "Appended records count as flushed at once.",
    "prior-epoch-commit": "A leader commits records of earlier epochs by counting copies.",
    "truncate-below-high-watermark": "A follower drops committed records when its log diverges.",
    "stale-leader-reads": "A leader answers reads without asking whether it still leads.",
    "ack-before-commit": "A write is acknowledged once the leader alone holds it.",
}

#: Name to sentence, in the order in which the nodes declare them.
PLANTED_BUGS: Final[Mapping[str, str]] = {
    name: _SENTENCES[name]
    for name in (field.replace("_", "-") for field in PlantedBugs.__struct_fields__)
}
