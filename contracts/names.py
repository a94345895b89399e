"""Identifiers that every room speaks of."""

from typing import NewType

#: Name of a node under test, ``n1`` to ``n9``; also its host name inside the test network.
NodeName = NewType("NodeName", str)

#: Identifier of a run: UTC time and seed, unique on the machine, used in labels and folder names.
RunId = NewType("RunId", str)
