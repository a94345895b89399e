"""Where the recorded histories of others are, and when their absence is a failure."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

#: The folder beside the checkout that is used where the environment names none.
BESIDE = Path(__file__).parents[3] / "shared" / "data"
#: Recorded histories that there are; fewer are a broken folder.
COUNT_MIN = 56


def folder(environment: Mapping[str, str]) -> Path:
    """Return the folder in ``SPLITBRAIN_CORPUS``, else the one beside the checkout."""
    return Path(environment.get("SPLITBRAIN_CORPUS") or BESIDE)


def recorded_verdicts(recorded: Path) -> dict[str, dict[str, Any]]:
    """File to its verdict; nothing where the recorded histories are not at hand."""
    found: dict[str, dict[str, Any]] = {}
    for verdicts in sorted(recorded.glob("*/verdicts.json")):
        for name, verdict in json.loads(verdicts.read_text()).items():
            found[f"{verdicts.parent.name}/{name}"] = verdict
    return found


def lacking(environment: Mapping[str, str]) -> str | None:
    """Return the problem where they have to be at hand; None elsewhere, and where they are."""
    recorded = folder(environment)
    if environment.get("CI") != "true" or len(recorded_verdicts(recorded)) >= COUNT_MIN:
        return None
    return f"no recorded histories in {recorded}: set SPLITBRAIN_CORPUS to their folder"
