"""``scenario.json``: a simulated world as data, written and read strictly.

Whoever replays, shrinks or runs one reads it here. A misfit is told in one sentence with
the file, the field and what is allowed: a scenario may come from a person, from a newer version, or
from a folder that was copied in part.
"""

from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

import msgspec

from splitbrain.contracts.errors import UNREADABLE, UsageError
from splitbrain.contracts.scenario import SCENARIO_SCHEMA, Scenario
from splitbrain.harness.folder.manifest import is_changed
from splitbrain.harness.folder.scenario_rules import CORRECT, RuleError, check_fields, check_values
from splitbrain.harness.folder.scenario_text import SCENARIO_FILE
from splitbrain.harness.folder.simulation_record import SimulationRecord, decode_record
from splitbrain.harness.folder.tool_version import this_tool
from splitbrain.history.blobs import is_blob, unpack
from splitbrain.history.json_problems import in_words
from splitbrain.history.run_folder import RunFolder
from splitbrain.history.upgrades import upgraded_scenario

_OTHER_VERSION = "Replay a run made by this version"


#: Field of the file besides those of the scenario.
_MADE_BY: Final = "made_by"


class _Schema(msgspec.Struct):
    schema: int = SCENARIO_SCHEMA


class _Origin(msgspec.Struct):
    made_by: str | None = None


class OtherSchemaError(ValueError):
    """The scenario was written by another version."""


class NamedScenario(msgspec.Struct, frozen=True):
    """A scenario that a user names, and where it came from."""

    scenario: Scenario
    #: Path, or a few words.
    source: str
    #: As ``this_tool`` returned it there; None: it does not say.
    made_by: str | None


def encode_scenario(scenario: Scenario) -> bytes:
    """As indented JSON, with the splitbrain that made it."""
    content = {**msgspec.to_builtins(scenario), _MADE_BY: this_tool()}
    return msgspec.json.format(msgspec.json.encode(content), indent=2) + b"\n"


def read_scenario(path: Path) -> Scenario:
    """Read a scenario.

    Raises:
        UsageError: it is missing, broken, of another version, or of a world that cannot be.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise _unreadable(path, error) from error
    return _decoded(content, path)


def _decoded(content: bytes | str, source: object) -> Scenario:
    try:
        return decode_scenario(content)
    except OtherSchemaError as error:
        raise _unreadable(source, error) from error
    except (ValueError, RecursionError) as error:
        next_step = error.next_step if isinstance(error, RuleError) else CORRECT
        problem = f"{source} is no scenario that can be run: {in_words(error)}"
        raise UsageError(problem, next_step) from error


def read_named_scenario(word: str) -> NamedScenario:
    """Read the scenario of a file that the user names, or of a line that has all of it.

    Raises:
        UsageError: there is no such file, or it holds no scenario that can be run.
    """
    if is_blob(word):
        blob = unpack(word)
        if not blob.name.endswith(SCENARIO_FILE):
            raise UsageError(
                f"--scenario is given the file {blob.name}, which is no scenario",
                "Give it to the command and the option that its line names",
            )
        source = f"the {blob.name} of the line"
        return NamedScenario(_decoded(blob.text, source), source, blob.made_by)
    path = Path(word)
    if not path.is_file():
        raise UsageError(
            f"there is no file {path}", "Name the scenario.json of a run, as it is or edited"
        )
    scenario, made_by = read_scenario(path), None
    # Nothing depends on it: whoever edits a file may write anything there.
    with suppress(OSError, *UNREADABLE):
        made_by = msgspec.json.decode(path.read_bytes(), type=_Origin).made_by
    return NamedScenario(scenario, word, made_by)


def decode_scenario(content: bytes | str) -> Scenario:
    """Return the scenario of a text.

    Raises:
        ValueError: it is none, one of another version, or of a world that cannot be.
    """
    msgspec.json.decode(content, type=_Schema)
    decoded = upgraded_scenario(msgspec.json.decode(content))
    decoded = {name: value for name, value in decoded.items() if name != _MADE_BY}
    schema = decoded.get("schema", SCENARIO_SCHEMA)
    if schema != SCENARIO_SCHEMA:
        message = f"it has schema {schema}, this version reads {SCENARIO_SCHEMA}"
        raise OtherSchemaError(message)
    scenario = msgspec.convert(decoded, Scenario)
    check_fields(decoded)
    check_values(scenario)
    return scenario


def read_recorded(folder: RunFolder) -> tuple[Scenario, SimulationRecord]:
    """Return the scenario of a run folder, and what the run came to.

    Raises:
        UsageError: one of them cannot be used, or was edited since the run.
    """
    scenario, record = read_scenario(folder.scenario), read_simulation(folder)
    if is_changed(folder, folder.scenario.name):
        raise UsageError(
            f"{folder.scenario} was changed since the run, so it is the scenario of another world",
            f"`splitbrain sim --scenario {folder.scenario}` runs it as a run of its own",
        )
    if is_changed(folder, folder.simulation.name):
        raise UsageError(
            f"{folder.simulation} was changed since the run, so it does not say what that came to",
            f"`splitbrain sim --scenario {folder.scenario}` runs the same world anew",
        )
    return scenario, record


@contextmanager
def said_of(source: object) -> Generator[None]:
    """A context: what is refused in it is refused of this scenario.

    Raises:
        UsageError: with the file's name.
    """
    try:
        yield
    except UsageError as error:
        raise UsageError(f"{source}: {error.problem}", error.next_step) from error


def read_simulation(folder: RunFolder) -> SimulationRecord:
    """Read the outcome of the run when it was made.

    Raises:
        UsageError: it is missing, broken, or of another version.
    """
    try:
        return decode_record(folder.simulation.read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        raise _unreadable(folder.simulation, error) from error


def _unreadable(source: object, error: Exception) -> UsageError:
    why = (error.strerror or str(error)) if isinstance(error, OSError) else in_words(error)
    return UsageError(f"{source} cannot be read: {why}", _OTHER_VERSION)
