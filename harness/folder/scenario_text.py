"""A scenario as short text: what is equal to the default is left out.

Whether it can be run is asked by ``scenario_file``, not here.
"""

from typing import Any, Final

import msgspec

from splitbrain.contracts.scenario import Scenario
from splitbrain.history.blobs import Blob, pack

SCENARIO_FILE: Final = "scenario.json"
#: Written even where equal to the default: needed to read the text back.
_ALWAYS: Final = ("schema", "system", "seed")


def changed_fields(scenario: Scenario) -> dict[str, Any]:
    """Return the fields that differ from their defaults, as plain data."""
    whole: dict[str, Any] = msgspec.to_builtins(scenario)
    plain: dict[str, Any] = msgspec.to_builtins(Scenario(system="", seed=0))
    changed = {
        name: value for name, value in whole.items() if name in _ALWAYS or value != plain[name]
    }
    for fault in whole["faults"]:
        for name in ("options", "when"):
            if not fault.get(name, True):
                del fault[name]
    return changed


def scenario_words(scenario: Scenario, made_by: str, path: str) -> list[str]:
    """Return the command line that runs a world again, which travels within it.

    Args:
        scenario: the world.
        made_by: as ``this_tool`` returned it there.
        path: of its file, which is named where the line would become too long.
    """
    text = msgspec.json.encode(changed_fields(scenario)).decode()
    word = pack(Blob(SCENARIO_FILE, text, made_by))
    return ["splitbrain", "replay", "--scenario", word or path]
