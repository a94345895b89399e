"""Formats a node's data folder, once, and says when it may be done unasked.

A voter that forgets what it flushed is what Raft does not survive. So a node that has lived before
and finds its folder empty is formatted with a fresh directory id: it comes back as an observer. A
folder that holds anything of a node that lived is not touched.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Final

import msgspec

from splitbrain.nodes.quorum.identifiers import DirectoryId
from splitbrain.nodes.storage.errors import AlreadyFormattedError
from splitbrain.nodes.storage.filesystem import FileSystem
from splitbrain.nodes.storage.identity import StorageIdentity, format_storage
from splitbrain.nodes.storage.layout import LOG_FOLDER, META_PROPERTIES, VOTERS

#: Names allowed in a folder that holds nothing of a node: what a fresh file system has in its root,
#: and what formatting makes before ``meta.properties``, which makes a folder a node's.
_NOTHING_NAMES: Final = (
    "lost+found", LOG_FOLDER, VOTERS, f"{VOTERS}.tmp", f"{META_PROPERTIES}.tmp",
)  # fmt: skip
_DIRECTORY_ID_BYTES: Final = 16


def format_node(
    filesystem: FileSystem,
    folder: Path,
    identity: StorageIdentity,
    *,
    has_lived: bool,
    token_hex: Callable[[int], str],
) -> DirectoryId:
    """Format a data folder, made if need be; the directory id that it was given.

    A node that has lived before gets a fresh one: ``token_hex`` gives so many random bytes as
    lower-case hex digits, as ``secrets.token_hex`` does.

    Raises:
        AlreadyFormattedError: it is formatted.
        OSError: it cannot be written.
    """
    if has_lived:
        fresh = DirectoryId(token_hex(_DIRECTORY_ID_BYTES))
        identity = msgspec.structs.replace(identity, directory_id=fresh)
    filesystem.make_folder(folder)
    format_storage(filesystem, folder, identity)
    return identity.directory_id


def holds_node(filesystem: FileSystem, folder: Path) -> bool:
    """Whether the folder holds what formatting would not leave half done; raises OSError."""
    if not filesystem.exists(folder):
        return False
    return any(name not in _NOTHING_NAMES for name in filesystem.list(folder))


def format_if_empty(
    filesystem: FileSystem,
    folder: Path,
    identity: StorageIdentity,
    *,
    has_lived: bool,
    token_hex: Callable[[int], str],
) -> DirectoryId | None:
    """As ``format_node``, if the folder holds nothing of a node, else None; raises OSError."""
    if holds_node(filesystem, folder):
        return None
    try:
        return format_node(filesystem, folder, identity, has_lived=has_lived, token_hex=token_hex)
    except AlreadyFormattedError:  # no identity, but a log or a vote
        return None
