"""Settings that a run draws by its seed: ``--setting sync_interval=drawn``.

``drawn`` takes one of the values that the adapter declares, ``drawn:A,B,C`` one of those listed,
``drawn:10..10000`` a whole number between the two, small ones as often as large ones. The record of
the run has what came out, so that a replay draws nothing.
"""

import math
import random
import re
from collections.abc import Mapping
from typing import Final

from splitbrain.contracts.errors import UsageError
from splitbrain.contracts.system import System

DRAWN: Final = "drawn"
_MARK: Final = ":"
_RANGE: Final = re.compile(r"(\d{1,18})\.\.(\d{1,18})", re.ASCII)


def settled_settings(settings: Mapping[str, str], system: System, seed: int) -> dict[str, str]:
    """Return the settings with each drawn one settled, by its own name and the seed alone.

    Raises:
        UsageError: there is nothing to draw from.
    """
    return {
        name: _settled(name, value, system, seed) if _is_drawn(value) else value
        for name, value in settings.items()
    }


def _is_drawn(value: str) -> bool:
    return value == DRAWN or value.startswith(DRAWN + _MARK)


def _settled(name: str, value: str, system: System, seed: int) -> str:
    chance = random.Random(f"{seed} setting {name}")
    listed = value.removeprefix(DRAWN).removeprefix(_MARK)
    if ends := _RANGE.fullmatch(listed):
        least, most = map(int, ends.groups())
        if least <= most:
            # By orders of magnitude: of 10 to 10,000 a third is below 100.
            drawn = math.exp(chance.uniform(math.log(least + 1), math.log(most + 2))) - 1
            return str(min(most, max(least, int(drawn))))
    elif listed:
        values = listed.split(",")
        if all(values):
            return chance.choice(values)
    elif isinstance(declared := system.settings.get(name), tuple):
        return chance.choice(declared)
    raise UsageError(
        f"the setting {name} of {system.name} cannot be {value!r}, which names no values",
        "Write drawn:A,B for one of these values, or drawn:10..1000 for a whole number",
    )
