"""The record that makes files part of a lake: one commit, written last, by one small write.

A commit names runs and the files that hold their rows. Until it is there whole, nothing of it is;
a torn one is known by its digest and counts for nothing. Commits are never changed. Of several that
know one run, ``snapshot`` takes one.
"""

import datetime as dt
import hashlib
import secrets
from typing import Final

import msgspec

from splitbrain.contracts.errors import HarnessError

#: Version of the lake's layout: of this record, and of the names of files.
LAYOUT: Final = 1
COMMITS: Final = "commits"
TABLES: Final = "tables"
_DIGEST_BYTES: Final = 16


class Source(msgspec.Struct, frozen=True):
    """One file of a run folder, as it was when it was read."""

    #: Relative to the run folder.
    path: str
    size_bytes: int
    modified_ns: int
    #: BLAKE2b of so many bytes, hex.
    digest: str


class Partition(msgspec.Struct, frozen=True, order=True):
    """Folder of a table: what queries leave out whole."""

    system: str
    #: UTC, ``2026-11-21``.
    day: str


class DataFile(msgspec.Struct, frozen=True):
    """One Parquet file: rows of one table, of all runs that the commit has in one partition."""

    name: str
    table: str
    #: Of the table's schema.
    version: int
    partition: Partition
    rows: int
    size_bytes: int


class RunEntry(msgspec.Struct, frozen=True):
    """One run of a commit."""

    run_id: str
    partition: Partition
    #: From 1; grows each time that the run is read again because it has changed.
    generation: int
    #: Commit of the ingest that read it; a compaction keeps it.
    ingest: str
    #: How often its rows have been moved since.
    compaction: int
    sources: tuple[Source, ...]
    #: The run was still under way.
    is_open: bool
    state: str

    @property
    def precedence(self) -> tuple[int, str, int]:
        """Of the entries of one run, the greatest counts."""
        return self.generation, self.ingest, self.compaction


class Commit(msgspec.Struct, frozen=True):
    """Addition of one small write to a lake."""

    layout: int
    commit_id: str
    runs: tuple[RunEntry, ...]
    files: tuple[DataFile, ...]


class _Layout(msgspec.Struct, frozen=True):
    """The part of a commit that every version can read."""

    layout: int


def new_commit_id() -> str:
    """A name that nobody else draws, in the order of time for people."""
    stamp = dt.datetime.now(dt.UTC).strftime("%Y%m%dT%H%M%SZ")
    return f"{stamp}-{secrets.token_hex(8)}"


def commit_name(commit_id: str) -> str:
    """The file of a commit."""
    return f"{COMMITS}/{commit_id}.json"


def data_name(table: str, partition: Partition, commit_id: str) -> str:
    """The file of a commit's rows of one table and partition, with folders as Hive names them."""
    system, day = escaped(partition.system), escaped(partition.day)
    return f"{TABLES}/{table}/system={system}/day={day}/{commit_id}.parquet"


def escaped(value: str) -> str:
    """A partition's value as a folder name; Spark reads it back."""
    plain = value.encode()
    return "".join(
        chr(byte) if chr(byte).isascii() and (chr(byte).isalnum() or byte in b"-_.")
        else f"%{byte:02X}"
        for byte in plain
    )  # fmt: skip


def encode_commit(commit: Commit) -> bytes:
    """The commit and, on a line of its own, the digest that tells it from a torn one."""
    body = msgspec.json.encode(commit)
    return body + b"\n" + _digest(body) + b"\n"


def decode_commit(content: bytes) -> Commit | None:
    """The commit; None where the write did not come to its end.

    Raises:
        HarnessError: a later version of splitbrain wrote it.
    """
    body, separator, digest = content.removesuffix(b"\n").rpartition(b"\n")
    if not (separator and content.endswith(b"\n") and digest == _digest(body)):
        return None
    layout = msgspec.json.decode(body, type=_Layout).layout
    if layout > LAYOUT:
        raise HarnessError(
            "read the lake",
            "a commit in it",
            f"its layout is {layout}, and this version reads layouts up to {LAYOUT}",
            "Use the version of splitbrain that wrote it, or a later one.",
        )
    return msgspec.json.decode(body, type=Commit)


def _digest(body: bytes) -> bytes:
    return hashlib.blake2b(body, digest_size=_DIGEST_BYTES).hexdigest().encode()
