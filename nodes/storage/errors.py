"""Errors of a node's files, each told in one sentence with the next step.

Everything here ends the node (or refuses its start): storage never carries on with files that it
does not trust. After a failed fsync nothing that was written since the last good one can be
trusted, not even what a later fsync reports: ``StorageFailed`` is final.
"""

from pathlib import Path


class StorageError(Exception):
    """The node cannot use its files."""


class NotFormattedError(StorageError):
    """The folder is missing or holds no formatted storage."""

    def __init__(self, folder: Path, problem: str) -> None:
        super().__init__(
            f"data folder {folder} {problem}; format it first, or mount the right folder"
        )


class AlreadyFormattedError(StorageError):
    """The folder to be formatted is in use already."""

    def __init__(self, folder: Path) -> None:
        super().__init__(
            f"data folder {folder} is formatted already; remove it first if its data may be lost"
        )


class DynamicVotersError(StorageError):
    """The folder's log names its voters, which then are not those of the configuration."""

    def __init__(self, folder: Path) -> None:
        super().__init__(
            f"the log in {folder} names its voters (kraft.version 1), and a node here has those of "
            "its configuration; adopt a folder of a quorum with static voters"
        )


class ForeignStorageError(StorageError):
    """The folder belongs to another cluster or another node."""

    def __init__(self, path: Path, what: str, found: str, wanted: str) -> None:
        super().__init__(
            f"{path} names {what} {found}, this node wants {wanted}; mount the folder that belongs "
            "to this node"
        )


class StorageInUseError(StorageError):
    """Another process holds the folder."""

    def __init__(self, path: Path) -> None:
        super().__init__(f"another process holds {path}; stop it before starting a second one")


class CorruptStorageError(StorageError):
    """A file holds what this node cannot have written, below what was flushed."""

    def __init__(
        self, path: Path, problem: str, *, offset: int | None = None, position: int | None = None
    ) -> None:
        self.path = path
        self.problem = problem
        #: First log offset that is not intact, where known.
        self.offset = offset
        #: Byte position in the file, where known.
        self.position = position
        place = "" if position is None else f" at byte {position}"
        record = "" if offset is None else f" (log offset {offset})"
        super().__init__(
            f"{path} is corrupt{place}{record}: {problem}; restore the folder from a copy, or wipe "
            "it and let the node come back with a new directory id"
        )


class StorageFailed(StorageError):
    """A write or an fsync failed; the node must stop, and nothing may be retried."""

    def __init__(self, action: str, path: Path, reason: str) -> None:
        self.reason = reason
        super().__init__(
            f"could not {action} {path}: {reason}; the node stops because it can no longer tell "
            "what is on the disk"
        )
