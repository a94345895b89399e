"""Identifiers, and the numbers of recorded lines, that every room speaks of."""

from typing import Annotated, Final, NewType

import msgspec

#: Times, offsets and counts of a record; larger ones fit into no column and come from no clock.
Int64 = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]

#: Name of a node under test, ``n1`` to ``n9``; also its host name inside the test network.
NodeName = NewType("NodeName", str)

#: Epoch of positions, and of records in a log, where a system has no epochs: ``[-1, revision]``.
NO_EPOCH: Final = -1

#: The system under test where none is named.
DEFAULT_SYSTEM: Final = "kraft"

#: Between the name of a system and a version of it, ``etcd@3.5.2``.
VERSION_MARK: Final = "@"


def system_name(system: str) -> str:
    """Return the name of a system that is chosen with a version, ``NAME@VERSION``, or without."""
    return system.partition(VERSION_MARK)[0]


#: Identifier of a run: UTC time and seed, unique on the machine, used in labels and folder names.
RunId = NewType("RunId", str)
