"""Commands of ``python -m splitbrain.nodes``: format a data folder, adopt one of Kafka's, run.

Errors that a user can do something about are one sentence on standard error and an exit code; see
``exit_codes``. Must never print a traceback for them.
"""

import argparse
import asyncio
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

from splitbrain.nodes.quorum.errors import StorageMismatch, UnreadableRecordError
from splitbrain.nodes.quorum.settings import QuorumSettings
from splitbrain.nodes.server.host import exit_codes
from splitbrain.nodes.server.host.incarnation import IncarnationError
from splitbrain.nodes.server.machine.configuration import (
    ConfigurationError,
    NodeConfiguration,
    read_configuration,
)
from splitbrain.nodes.server.machine.data_folder import (
    adopt_data_folder,
    format_data_folder,
    format_data_folder_if_empty,
)
from splitbrain.nodes.server.machine.log_lines import LogLines
from splitbrain.nodes.server.start.quorum_settings import quorum_settings
from splitbrain.nodes.storage.errors import CorruptStorageError, StorageError, StorageFailed

#: Names the configuration file where ``--config`` does not.
CONFIGURATION_VARIABLE: Final = "SPLITBRAIN_NODE_CONFIG"
#: Why a node cannot start.
_REFUSALS: Final = (StorageError, StorageMismatch, UnreadableRecordError, IncarnationError, OSError)
#: Preparation of a data folder before a node runs on it.
_PREPARATIONS: Final[Mapping[str, Callable[[NodeConfiguration], object]]] = {
    "format": format_data_folder,
    "adopt": adopt_data_folder,
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; its exit code."""
    parsed = _parser().parse_args(arguments)
    path = parsed.config or os.environ.get(CONFIGURATION_VARIABLE)
    if path is None:
        _say(f"no configuration: give --config FILE or set {CONFIGURATION_VARIABLE}")
        return exit_codes.UNUSABLE
    try:
        configuration = read_configuration(Path(path))
        settings = _settings(configuration)
        prepare = _PREPARATIONS.get(parsed.command)
        if prepare is not None:
            prepare(configuration)
            return exit_codes.STOPPED
    except (ConfigurationError, StorageError, OSError) as error:
        _say(error)
        return exit_codes.CORRUPT if isinstance(error, CorruptStorageError) else exit_codes.UNUSABLE
    return _run(configuration, settings, format_first=parsed.format_if_empty)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m splitbrain.nodes", description="A KRaft quorum's node."
    )
    commands = parser.add_subparsers(dest="command", required=True)
    for name, purpose in (
        ("format", "format the data folder, once"),
        ("adopt", "make the data folder of a stopped controller of Kafka this node's, once"),
        ("run", "run the node until SIGTERM"),
    ):
        command = commands.add_parser(name, help=purpose, description=purpose)
        command.add_argument("--config", help=f"JSON file, else ${CONFIGURATION_VARIABLE}")
        if name == "run":
            command.add_argument(
                "--format-if-empty",
                action="store_true",
                help="format the data folder first if it holds nothing at all",
            )
    return parser


def _settings(configuration: NodeConfiguration) -> QuorumSettings:
    try:
        settings = configuration.settings
        if configuration.state_machine == "metadata":
            from splitbrain.nodes.server.start.metadata_settings import quorums_part

            # Refused before anything is opened, by whatever node of the cluster.
            settings = quorums_part(settings)
        return quorum_settings(settings)
    except ValueError as error:
        raise ConfigurationError(f"the configuration cannot be used: {error}.") from error


def _run(configuration: NodeConfiguration, settings: QuorumSettings, *, format_first: bool) -> int:
    lines = LogLines(configuration.name)
    try:
        if format_first:
            directory_id = format_data_folder_if_empty(configuration)
            if directory_id is not None:
                lines.write("info", "formatted", directory_id=directory_id)
        return _serve(configuration, settings)
    except _REFUSALS as error:
        lines.write("error", "fatal", reason=str(error))
        _say(error)
        return _exit_code(error)


def _serve(configuration: NodeConfiguration, settings: QuorumSettings) -> int:
    import uvloop

    from splitbrain.nodes.server.machine.assembly import serve

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(serve(configuration, settings))


def _exit_code(error: Exception) -> int:
    """Return the code of what a node could not start for."""
    if isinstance(error, StorageFailed):
        return exit_codes.DISK_FAILED
    corrupt = isinstance(error, CorruptStorageError | StorageMismatch | UnreadableRecordError)
    return exit_codes.CORRUPT if corrupt else exit_codes.UNUSABLE


def _say(problem: object) -> None:
    sys.stderr.write(f"{problem}\n")
