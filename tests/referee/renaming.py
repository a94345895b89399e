"""Allowed differences between two equal clusters, by declared rules. Pure.

Everything else that tools print must be equal: words of refusals, levels, orders of rows, and that
a directory has no id. Must never rename what an administrator would act on.
"""

import re
from collections.abc import Mapping
from typing import Final

#: An id in Kafka's base 64. The one of all zeros, which stands for none, is nobody's.
_ID: Final = r"(?!A{22})[\w-]{22}"
_NUMBER: Final = r"-?\d+"

#: Each rule: what, and how it is written instead.
_RULES: Final[tuple[tuple[re.Pattern[str], str], ...]] = tuple(
    (re.compile(pattern, re.MULTILINE), instead)
    for pattern, instead in (
        # Frames of the tool that failed, not of who answered.
        (r"^\t(?:at .*|\.\.\. \d+ more)\n", ""),
        # Nor how long the tool looked for somebody who would.
        (r"^\S+ \w+ NetworkClient: .*\n", ""),
        (r"^\d\d:\d\d:\d\d,\d{3} ", "TIME "),
        # The active controller, its epoch, how far its log goes, who lags behind.
        (rf"^(LeaderId|LeaderEpoch|HighWatermark|MaxFollowerLag\w*): +{_NUMBER}$", r"\1: NUMBER"),
        (rf'("directoryId": )"{_ID}"', r"\1ID"),
        (r"(FinalizedVersionLevel: \S+\s+Epoch: )\d+", r"\1NUMBER"),
        # A row of ``describe --replication``: offset, lag and times.
        (
            rf"^(\d+)\s+(\S{{22}})\t{_NUMBER}\s+{_NUMBER}\s+{_NUMBER}\s+{_NUMBER}\s+(\w+)\s*$",
            r"\1 \2 OFFSET LAG TIME TIME \3",
        ),
        (rf"^(\d+) {_ID} OFFSET", r"\1 ID OFFSET"),
        # Its columns are as wide as the longest number.
        (r"(?<=\S)[ \t]+(?=\S)", " "),
        (r"[ \t]+$", ""),
    )
)
_TOPIC_ID: Final = re.compile(rf"(TopicId: )({_ID})")
_REPLICA: Final = re.compile(
    r"^(\d+) (\S+ OFFSET LAG TIME TIME) (Leader|Follower|Observer)$", re.MULTILINE
)
_OBSERVER: Final = "Observer"
_OBSERVERS: Final = re.compile(r"^(CurrentObservers: )\[(.*)\]$", re.MULTILINE)


class Renaming:
    """Of what one cluster's tools print, one answer after the other."""

    def __init__(self, literals: Mapping[str, str]) -> None:
        """``literals``: what this cluster alone is called, and how it is written instead."""
        self._literals = literals
        self._topics: dict[str, str] = {}

    def __call__(self, text: str) -> str:
        """The text as every cluster would print it."""
        for literal, instead in self._literals.items():
            text = text.replace(literal, instead)
        for pattern, instead in _RULES:
            text = pattern.sub(instead, text)
        text = _TOPIC_ID.sub(lambda found: found[1] + self._topic(found[2]), text)
        text = _sorted_rows(text, _REPLICA)
        return _OBSERVERS.sub(lambda found: f"{found[1]}[{_sorted_objects(found[2])}]", text)

    def _topic(self, topic_id: str) -> str:
        """The same name for the same id, numbered as they appear."""
        return self._topics.setdefault(topic_id, f"TOPIC-{len(self._topics) + 1}")


def _sorted_rows(text: str, row: re.Pattern[str]) -> str:
    """Replicas by what they are: any voter may lead, and observers come as they were heard."""
    rows = sorted(row.finditer(text), key=lambda found: int(found[1]))
    if not rows:
        return text
    voters = [found for found in rows if found[3] != _OBSERVER]
    lines = [
        *(f"{found[1]} {found[2]}" for found in voters),
        f"voters: {', '.join(sorted(found[3] for found in voters))}",
        *(found[0] for found in rows if found[3] == _OBSERVER),
    ]
    start = min(found.start() for found in rows)
    end = max(found.end() for found in rows)
    return text[:start] + "\n".join(lines) + text[end:]


def _sorted_objects(listed: str) -> str:
    return ", ".join(sorted(re.findall(r"\{[^}]*\}", listed)))
