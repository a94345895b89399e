"""A node's configuration: one JSON file, read once at start.

Unknown fields and settings are refused by name, so that a typing error never runs a test
with defaults. Must never write.
"""

from pathlib import Path
from typing import Final

import msgspec

from splitbrain.nodes.quorum.persistent import Voter
from splitbrain.nodes.server.host.state_machine import StateMachineName


class ConfigurationError(Exception):
    """The configuration cannot be used; the message says which file, what, and what to do."""


class Listener(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An address to bind to."""

    host: str
    port: int


class NodeConfiguration(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Content of the configuration file."""

    #: Name in state events and logs, ``n1``.
    name: str
    node_id: int
    #: 32 lower-case hex digits, fixed for the life of the data folder.
    directory_id: str
    #: Kafka's cluster id, 22 characters.
    cluster_id: str
    voters: tuple[Voter, ...]
    quorum_listener: Listener
    client_listener: Listener
    data_folder: str
    #: A broker's: where Kafka's clients are told that it is reached; None: where it listens.
    advertised_listener: Listener | None = None
    #: Where Prometheus may ask for figures, an address of this machine; None: nowhere.
    metrics_listener: Listener | None = None
    #: File that state events are appended to; None to write none.
    state_event_file: str | None = None
    #: File that durable lengths are told in, for recovery tooling; None to keep none. See
    #: ``nodes.storage.durable_lengths``.
    durable_length_file: str | None = None
    #: Settings by our names or by Kafka's, values as text, milliseconds where a time is meant.
    settings: dict[str, str] = {}
    #: State machine above the log. A node with metadata is a controller if it is a voter, by its
    #: node id, and a broker otherwise.
    state_machine: StateMachineName = "registers"

    @property
    def is_broker(self) -> bool:
        """Whether the node is a broker: it has metadata, and is no voter."""
        is_voter = any(voter.node_id == self.node_id for voter in self.voters)
        return self.state_machine == "metadata" and not is_voter


_DECODER: Final = msgspec.json.Decoder(NodeConfiguration)


def read_configuration(path: Path) -> NodeConfiguration:
    """Read and check a configuration file; raises ConfigurationError."""
    try:
        configuration = _DECODER.decode(path.read_bytes())
    except OSError as error:
        raise ConfigurationError(
            f"cannot read the configuration {path}: {error.strerror}. Give its path by --config."
        ) from error
    except (ValueError, RecursionError) as error:
        raise ConfigurationError(
            f"the configuration {path} is malformed: {error}. Correct the file."
        ) from error
    _check(configuration, path)
    return configuration


def encode_configuration(configuration: NodeConfiguration) -> bytes:
    """Return the file's content, indented for people."""
    return msgspec.json.format(msgspec.json.encode(configuration), indent=2) + b"\n"


def _check(configuration: NodeConfiguration, path: Path) -> None:
    problem = _problem(configuration)
    if problem is not None:
        raise ConfigurationError(f"the configuration {path} cannot be used: {problem}.")


def _problem(configuration: NodeConfiguration) -> str | None:
    ids = [voter.node_id for voter in configuration.voters]
    if len(set(ids)) != len(ids):
        return "two voters have the same node id; give each its own"
    for name, directory_id in [("the node", configuration.directory_id)] + [
        (f"voter {voter.node_id}", voter.directory_id) for voter in configuration.voters
    ]:
        if len(directory_id) != 32 or set(directory_id) - set("0123456789abcdef"):
            return f"the directory id of {name} is not 32 lower-case hex digits"
    if not configuration.voters:
        return "there are no voters; name at least one"
    return None
