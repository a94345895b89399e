"""The next step to offer after a misspelt name."""

import difflib
from collections.abc import Iterable


def or_nearest(wrong: str, right: Iterable[str], plural: str) -> str:
    """Return a clause: the nearest right name, or all of them, called ``plural`` ("faults")."""
    names = sorted(right)
    near = difflib.get_close_matches(wrong, names, n=1, cutoff=0.5)
    if near:
        return f"Did you mean {near[0]!r}?"
    if len(names) == 1:
        return f"There is only {names[0]!r}"
    return f"The {plural} are: {', '.join(names)}"
