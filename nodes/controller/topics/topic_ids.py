"""Ids of new topics: random ones, in the form of a version 4 UUID.

Source: Kafka's ``Uuid.randomUuid``; an id that a tool would take for an option is drawn again.
"""

from collections.abc import Container
from typing import Final

from splitbrain.nodes.quorum.random_source import RandomSource

_WORDS: Final = 4
_WORD_BITS: Final = 32
_VERSION_MASK: Final = 0xF << 76
_VERSION: Final = 4 << 76
_VARIANT_MASK: Final = 0b11 << 62
_VARIANT: Final = 0b10 << 62
#: The first six bits of an id whose base64 form begins with '-'.
_DASH: Final = 62
_DASH_SHIFT: Final = 122


def new_topic_id(random: RandomSource, *known: Container[str]) -> str:
    """32 lower-case hex digits: in none of ``known``, and nothing that begins with '-' in base64.

    The version and variant bits keep it from the ids that Kafka reserves.
    """
    while True:
        bits = 0
        for _ in range(_WORDS):
            bits = bits << _WORD_BITS | int(random.random() * (1 << _WORD_BITS))
        bits = bits & ~_VERSION_MASK & ~_VARIANT_MASK | _VERSION | _VARIANT
        drawn = f"{bits:032x}"
        if bits >> _DASH_SHIFT != _DASH and not any(drawn in some for some in known):
            return drawn
