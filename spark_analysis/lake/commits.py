"""Commit: the record that makes files part of a lake, written last, by one small write.

A commit names runs and the files that hold their rows. Until it is there whole, none of it counts;
a torn one is known by its digest. Commits are never changed. Of several that know one run,
``snapshot`` takes one.
"""

import datetime as dt
import hashlib
import secrets
from typing import Any, Final

import msgspec

from splitbrain.contracts.errors import HarnessError

#: Version of the lake's layout: of this record, and of the names of files.
LAYOUT: Final = 1
COMMITS: Final = "commits"
TABLES: Final = "tables"
#: Row of a table, by column.
Row = dict[str, Any]
_DIGEST_BYTES: Final = 16


class Source(msgspec.Struct, frozen=True):
    """Source file, as it was when read."""

    #: Relative to the run folder.
    path: str
    size_bytes: int
    modified_ns: int
    #: BLAKE2b of so many bytes, hex.
    digest: str


class Partition(msgspec.Struct, frozen=True, order=True):
    """Partition folder of a table, which queries can leave out whole."""

    system: str
    #: UTC, ``2026-11-21``.
    day: str


class DataFile(msgspec.Struct, frozen=True):
    """Parquet file: rows of one table, of all runs that the commit has in one partition."""

    name: str
    table: str
    #: Of the table's schema.
    version: int
    partition: Partition
    rows: int
    size_bytes: int


class RunEntry(msgspec.Struct, frozen=True):
    """Run of a commit."""

    run_id: str
    partition: Partition
    #: From 1; one more for each time that the changed run was read again.
    generation: int
    #: Commit of the ingest that read it; kept by a compaction.
    ingest: str
    #: Number of moves of its rows since.
    compaction: int
    sources: tuple[Source, ...]
    #: Whether the run was still under way.
    is_open: bool
    state: str

    @property
    def precedence(self) -> tuple[int, str, int]:
        """Return the rank among entries of one run; the greatest counts."""
        return self.generation, self.ingest, self.compaction


class Commit(msgspec.Struct, frozen=True):
    """Addition of one small write to a lake."""

    layout: int
    commit_id: str
    runs: tuple[RunEntry, ...]
    files: tuple[DataFile, ...]


class _Layout(msgspec.Struct, frozen=True):
    """Part of a commit that every version can read."""

    layout: int


def new_commit_id() -> str:
    """Return a unique name, in the order of time for people."""
    stamp = dt.datetime.now(dt.UTC).strftime("%Y%m%dT%H%M%SZ")
    return f"{stamp}-{secrets.token_hex(8)}"


def commit_name(commit_id: str) -> str:
    """Return the file name of a commit."""
    return f"{COMMITS}/{commit_id}.json"


def data_name(table: str, partition: Partition, commit_id: str) -> str:
    """Return the file name of a commit's rows of one table and partition, in Hive's folders."""
    system, day = escaped(partition.system), escaped(partition.day)
    return f"{TABLES}/{table}/system={system}/day={day}/{commit_id}.parquet"


def escaped(value: str) -> str:
    """Return a partition's value as a folder name; Spark reads it back."""
    plain = value.encode()
    return "".join(
        chr(byte) if chr(byte).isascii() and (chr(byte).isalnum() or byte in b"-_.")
        else f"%{byte:02X}"
        for byte in plain
    )  # fmt: skip


def encode_commit(commit: Commit) -> bytes:
    """Return the commit and, on a line of its own, the digest that tells it from a torn one."""
    body = msgspec.json.encode(commit)
    return body + b"\n" + _digest(body) + b"\n"


def decode_commit(content: bytes) -> Commit | None:
    """Return the commit; None if its write did not come to its end.

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
