"""Snapshot of a lake: of each run the one commit that counts; removal of the rest.

A reader lists the commits, and from then on meets the same rows whatever others write: files are
never changed, and a cleaning spares recently superseded ones. Must never look into the folders of
the tables: a file that no commit names does not exist. A cleaning removes it once it is older than
the grace: until then an ingest may be about to commit it, or a reader be reading it.
"""

import time
from collections.abc import Mapping
from typing import Final, NamedTuple

from splitbrain.contracts.errors import UNREADABLE, HarnessError
from splitbrain.spark_analysis.lake.commits import (
    COMMITS,
    TABLES,
    Commit,
    DataFile,
    RunEntry,
    decode_commit,
)
from splitbrain.spark_analysis.lake.store import Store


class LiveFile(NamedTuple):
    """File to be read, and the runs in it that no longer count."""

    file: DataFile
    #: Ids of runs that another commit holds by now.
    superseded: frozenset[str]


class Snapshot:
    """Commits of a lake, read once."""

    def __init__(self, commits: Mapping[str, Commit], torn: tuple[str, ...]) -> None:
        #: Names of commit files that did not come to their end.
        self.torn = torn
        #: By the names of their files.
        self.commits = commits
        #: Entry that counts for each run, and the name of its commit's file.
        self.runs: dict[str, tuple[RunEntry, str]] = {}
        for name in sorted(commits):
            for entry in commits[name].runs:
                known = self.runs.get(entry.run_id)
                if known is None or (entry.precedence, name) > (known[0].precedence, known[1]):
                    self.runs[entry.run_id] = (entry, name)

    def counts(self, name: str) -> frozenset[str]:
        """Return ids of the runs for which a commit is the one that counts."""
        return frozenset(
            entry.run_id
            for entry in self.commits[name].runs
            if self.runs[entry.run_id] == (entry, name)
        )

    def files(self, table: str | None = None) -> list[LiveFile]:
        """Return the files that hold the runs, of one table or of all."""
        found: list[LiveFile] = []
        for name, commit in sorted(self.commits.items()):
            counting = self.counts(name)
            if not counting:
                continue
            for file in commit.files:
                if table not in (None, file.table):
                    continue
                in_file = {
                    entry.run_id for entry in commit.runs if entry.partition == file.partition
                }
                if in_file & counting:
                    found.append(LiveFile(file, frozenset(in_file - counting)))
        return found


def read_snapshot(store: Store) -> Snapshot:
    """Read the lake as it is now; empty where there is none.

    Raises:
        OSError: the store cannot be read.
        HarnessError: a later version wrote it.
    """
    commits: dict[str, Commit] = {}
    torn: list[str] = []
    for name, content in store.read_all(COMMITS).items():
        try:
            commit = decode_commit(content)
        except UNREADABLE as error:
            raise HarnessError(
                "read the lake",
                f"{store.uri}/{name}",
                f"its digest is right and its content is not ({error})",
                "This is a defect of splitbrain; please report it with that file.",
            ) from error
        if commit is None:
            torn.append(name)
        else:
            commits[name] = commit
    return Snapshot(commits, tuple(torn))


#: Longer than any ingest of one commit and any query.
GRACE_S: Final = 24 * 3600.0


class Cleaned(NamedTuple):
    """Counts of a cleaning."""

    commits: int
    files: int
    size_bytes: int
    #: Superseded or uncommitted, and too young.
    spared: int


def clean(store: Store, *, grace_s: float = GRACE_S, now_s: float | None = None) -> Cleaned:
    """Remove garbage older than the grace; safe beside ingests, compactions and other cleanings.

    The grace is by the clock of the store, ``now_s`` by default this machine's time.

    Raises:
        OSError: the lake cannot be read or written.
        HarnessError: a later version wrote the lake.
    """
    now = time.time() if now_s is None else now_s
    # Files are listed before commits are read: a file committed in between is then named.
    files = list(store.files(TABLES))
    commit_files = list(store.files(COMMITS))
    snapshot = read_snapshot(store)
    written = {file.name: file.modified_s for file in commit_files}
    named = {file.name for commit in snapshot.commits.values() for file in commit.files}
    removed = spared = size = commits = 0
    for name in written:
        commit = snapshot.commits.get(name)
        if commit is not None and snapshot.counts(name):
            continue
        # A reader may have listed it until the last of its runs was superseded.
        superseding = (
            {snapshot.runs[entry.run_id][1] for entry in commit.runs} if commit else {name}
        )
        if max(written.get(other, now) for other in superseding) > now - grace_s:
            spared += 1
            continue
        store.remove(name)
        commits += 1
        if commit is not None:
            named -= {file.name for file in commit.files}
    for file in files:
        if file.name in named:
            continue
        if file.modified_s > now - grace_s:
            spared += 1
            continue
        store.remove(file.name)
        removed += 1
        size += file.size_bytes
    return Cleaned(commits, removed, size, spared)
