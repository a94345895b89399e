"""Formats the disk of a simulated machine where it is empty; fresh directory ids are the seed's.

Must never touch a disk that holds anything of a node: ``server.start.formatting`` decides it.
"""

from pathlib import Path

from splitbrain.contracts.names import NodeName
from splitbrain.contracts.simulation import World
from splitbrain.nodes.quorum.identifiers import DirectoryId
from splitbrain.nodes.server.start.formatting import format_if_empty
from splitbrain.nodes.storage.filesystem import FileSystem
from splitbrain.nodes.storage.identity import StorageIdentity


def format_where_empty(
    world: World,
    name: NodeName,
    disk: FileSystem,
    folder: Path,
    identity: StorageIdentity,
    *,
    has_lived: bool,
) -> DirectoryId | None:
    """As ``nodes.server.start.formatting.format_if_empty``, with random bytes of this world.

    Raises:
        OSError: a disk's fault struck.
    """
    stream = world.stream(f"directory {name}")

    def token_hex(size_bytes: int) -> str:
        return "".join(f"{int(stream.random() * 256):02x}" for _ in range(size_bytes))

    return format_if_empty(disk, folder, identity, has_lived=has_lived, token_hex=token_hex)
