"""The next step to offer after a misspelt name."""

import difflib
from collections.abc import Iterable


def nearest(wrong: str, right: Iterable[str]) -> str | None:
    """Return the right name that is most like the wrong one, None if none is like it."""
    return next(iter(difflib.get_close_matches(wrong, sorted(right), n=1, cutoff=0.5)), None)


def or_nearest(wrong: str, right: Iterable[str], plural: str) -> str:
    """Return a clause: the nearest right name, or all of them, called ``plural`` ("faults")."""
    names = sorted(right)
    if near := nearest(wrong, names):
        return f"Did you mean {near!r}?"
    if len(names) == 1:
        return f"There is only {names[0]!r}"
    return f"The {plural} are: {', '.join(names)}"
