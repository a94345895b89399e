"""``scenario.json``: a simulated world as data, written and read strictly.

Whoever replays or shrinks reads it here. What does not fit is told in one sentence: a scenario may
come from a person, from a newer version, or from a folder that was copied in part.
"""

from pathlib import Path

import msgspec

from contracts.errors import UsageError
from contracts.scenario import SCENARIO_SCHEMA, Scenario
from harness.simulation.record import SimulationRecord, decode_record
from history.json_problems import in_words
from history.run_folder import RunFolder


class _Schema(msgspec.Struct):
    schema: int = SCENARIO_SCHEMA


def encode_scenario(scenario: Scenario) -> bytes:
    """As indented JSON."""
    return msgspec.json.format(msgspec.json.encode(scenario), indent=2) + b"\n"


def read_scenario(path: Path) -> Scenario:
    """Read a scenario.

    Raises:
        UsageError: it is missing, broken, or of another version.
    """
    try:
        return decode_scenario(path.read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        raise _unreadable(path, error) from error


def decode_scenario(content: bytes | str) -> Scenario:
    """The scenario of a text.

    Raises:
        ValueError: it is none, one of another version, or of a world that cannot be.
    """
    schema = msgspec.json.decode(content, type=_Schema).schema
    if schema != SCENARIO_SCHEMA:
        message = f"it has schema {schema}, this version reads {SCENARIO_SCHEMA}"
        raise ValueError(message)
    scenario = msgspec.json.decode(content, type=Scenario)
    for name, number, least in (
        ("nodes", scenario.nodes, 1),
        ("observers", scenario.observers, 0),
        ("load.clients", scenario.load.clients, 1),
        ("load.timeout_us", scenario.load.timeout_us, 1),
        ("load_us", scenario.load_us, 0),
        ("segment_bytes", scenario.segment_bytes, 1),
    ):
        if number < least:
            message = f"{name} cannot be {number}"
            raise ValueError(message)
    return scenario


def read_simulation(folder: RunFolder) -> SimulationRecord:
    """What the run came to when it was made.

    Raises:
        UsageError: it is missing, broken, or of another version.
    """
    try:
        return decode_record(folder.simulation.read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        raise _unreadable(folder.simulation, error) from error


def _unreadable(path: Path, error: Exception) -> UsageError:
    why = (error.strerror or str(error)) if isinstance(error, OSError) else in_words(error)
    return UsageError(f"{path} cannot be read: {why}", "Replay a run made by this version")
