"""Times as users write them in options and files: ``60``, ``500ms``, ``1m``, ``1h30m``; pure."""

import re
from typing import Final

#: A number is of seconds.
Duration = str | int | float
#: For refusals.
EXAMPLES: Final = "60, 500ms, 45s, 1m or 1h30m"
_UNITS_S: Final = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001}
_NUMBER: Final = r"\d+(?:\.\d+)?"
_PARTS: Final = re.compile(
    r"\s*".join(rf"(?:(?P<{unit}>{_NUMBER})\s*{unit})?" for unit in _UNITS_S)
)


def seconds_of(duration: Duration) -> float:
    """Return the seconds of ``60``, ``"500ms"``, ``"1m"`` or ``"1h30m"``.

    Raises:
        ValueError: it is none of these.
    """
    try:
        return float(duration)
    except ValueError:
        pass
    parts = _PARTS.fullmatch(str(duration).strip())
    found = (
        {} if parts is None else {unit: part for unit, part in parts.groupdict().items() if part}
    )
    if not found:
        raise ValueError(f"{duration!r} is no time; write {EXAMPLES}")
    # Whole milliseconds of binary fractions: 0.1 s and 100 ms are one number.
    return round(sum(_UNITS_S[unit] * float(part) for unit, part in found.items()), 6)


def positive_seconds_of(duration: Duration) -> float:
    """Return the seconds of a time above 0; raise ValueError if it is none."""
    seconds = seconds_of(duration)
    if not 0 < seconds < float("inf"):
        raise ValueError(f"{duration!r} is no time above 0")
    return seconds
