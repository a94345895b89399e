"""Planted bugs: known ways to get consensus wrong, each one a branch in the code, all off.

They exist so that every checker and invariant can be shown to turn red. One frozen record for the
whole of ``nodes``, given at construction; nothing may switch a bug on later, and nothing but the
branch that it names may read it. Sources: Ongaro's thesis section 3.6.2 (commitment of earlier
epochs) and 6.4 (reads), KIP-595 (truncation, votes), issue 3.
"""

from collections.abc import Iterable
from typing import Final

import msgspec


class PlantedBugs(msgspec.Struct, frozen=True):
    """Which bugs are on. The default is the correct system."""

    #: A voter answers a vote without making it durable; a restart forgets it.
    vote_not_persisted: bool = False
    #: Appended records count as flushed at once, on leaders and followers; ``nodes.server`` asks
    #: the disk once a second, since nobody waits for it.
    ack_before_fsync: bool = False
    #: A leader commits records of earlier epochs by counting copies alone.
    prior_epoch_commit: bool = False
    #: A diverging follower drops its whole last common epoch, and the guard at the high watermark
    #: is off.
    truncate_below_high_watermark: bool = False
    #: A leader answers reads from its own state without asking anyone whether it still leads, and
    #: never resigns for want of a majority (else an isolated one would stop answering so soon that
    #: a container run hardly sees it).
    stale_leader_reads: bool = False
    #: The server acknowledges a write once it is appended; read by ``nodes.server`` alone.
    ack_before_commit: bool = False

    @classmethod
    def from_names(cls, names: Iterable[str]) -> "PlantedBugs":
        """Switches on the bugs named in kebab case, as on the command line.

        Raises:
            ValueError: a name is unknown; the message lists the known ones.
        """
        known = {field.replace("_", "-"): field for field in cls.__struct_fields__}
        chosen: dict[str, bool] = {}
        for name in names:
            if name not in known:
                raise ValueError(f"unknown bug {name!r}; known are {', '.join(sorted(known))}")
            chosen[known[name]] = True
        return cls(**chosen)

    def names(self) -> tuple[str, ...]:
        """Kebab-case names of the bugs that are on, in the order of declaration."""
        return tuple(
            field.replace("_", "-") for field in self.__struct_fields__ if getattr(self, field)
        )


NO_BUGS: Final = PlantedBugs()
