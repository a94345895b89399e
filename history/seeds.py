"""Seeds as users write them: one, or a half-open range; pure."""

import re
from typing import Final

from splitbrain.contracts.scenario import SEED_MAX

#: Next step of whoever wrote none.
WRITE_SEEDS: Final = "Write one seed or FIRST:END, such as 7 or 0:20; END itself is not run"
_SEEDS: Final = re.compile(r"(-?\d{1,40})(?:\s*:\s*(-?\d{1,40}))?")


def read_seeds(text: str) -> range:
    """Return the seeds of ``7``, one, or of ``0:20``, which ends before 20.

    Raises:
        ValueError: they are none; the message goes on after the name of what was written.
    """
    written = text.strip()
    match = _SEEDS.fullmatch(written)
    if match is None:
        raise ValueError(f"cannot be {text!r}")
    first = int(match[1])
    end = first + 1 if match[2] is None else int(match[2])
    if end <= first:
        raise ValueError(f"{written} is empty: {end} does not come after {first}")
    # The end of a range too: the length of a longer one is no number of this machine.
    if first < 0 or max(first, end - (match[2] is None)) > SEED_MAX:
        raise ValueError(f"{written} names a seed outside of 0 to {SEED_MAX:,}")
    return range(first, end)


def seeds_text(seeds: range) -> str:
    """Return seeds as ``read_seeds`` reads them."""
    return str(seeds.start) if len(seeds) == 1 else f"{seeds.start}:{seeds.stop}"


def seeds_named(seeds: range) -> str:
    """Return ``seed 7``, or ``seeds 0 to 19``."""
    if len(seeds) == 1:
        return f"seed {seeds.start}"
    return f"seeds {seeds.start} to {seeds.stop - 1}"
