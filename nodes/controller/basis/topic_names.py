"""Names that a topic may have, and which of them stand in each other's way.

Source: Kafka's rules for topic names; names that differ only in '.' and '_' would share metrics.
"""

import re
from collections.abc import Mapping
from itertools import product
from typing import Final

from splitbrain.nodes.controller.basis.decisions import Refusal
from splitbrain.nodes.wire.errors import ApiError

NAME_LENGTH_MAX: Final = 249
_LEGAL: Final = re.compile(r"[a-zA-Z0-9._-]+")
_INTERCHANGEABLE: Final = "._"


def check_topic_name(name: str) -> None:
    """Refuse a name that no topic may have; raises Refusal: INVALID_TOPIC_EXCEPTION."""
    problem = _problem(name)
    if problem is not None:
        raise Refusal(ApiError.INVALID_TOPIC_EXCEPTION, f"Topic name is invalid: {problem}")


def _problem(name: str) -> str | None:
    if not name:
        return "the empty string is not allowed"
    if name in {".", ".."}:
        return f"'{name}' is not allowed"
    if len(name) > NAME_LENGTH_MAX:
        return f"the length of '{name}' is longer than the max allowed length {NAME_LENGTH_MAX}"
    if _LEGAL.fullmatch(name) is None:
        return (
            f"'{name}' contains one or more characters other than ASCII alphanumerics, '.', '_' "
            "and '-'"
        )
    return None


def colliding_topic(name: str, known: Mapping[str, str]) -> str | None:
    """A known topic whose name differs at most in '.' and '_'; a name without either has none."""
    places = sum(name.count(character) for character in _INTERCHANGEABLE)
    if places == 0:
        return None
    # Whichever is shorter: all such names, or all topics.
    if 1 << places <= len(known):
        alike = (each for each in _variants(name) if each in known)
    else:
        unified = name.replace(".", "_")
        alike = (each for each in known if each.replace(".", "_") == unified)
    return min(alike, default=None)


def _variants(name: str) -> list[str]:
    parts = re.split(r"[._]", name)
    return [
        "".join(part + mark for part, mark in zip(parts, (*marks, ""), strict=True))
        for marks in product(_INTERCHANGEABLE, repeat=len(parts) - 1)
    ]
