"""Removes what counts for nothing any more: superseded commits, and files that no commit names.

What is younger than the grace is spared: an ingest may be about to commit it, or a reader who
listed the commits before may still be reading it. Of each run the commit that counts stays.
"""

import time
from typing import Final, NamedTuple

from splitbrain.spark_analysis.lake.commits import COMMITS, TABLES
from splitbrain.spark_analysis.lake.snapshot import read_snapshot
from splitbrain.spark_analysis.lake.store import Store

#: Longer than any ingest of one commit and any query.
GRACE_S: Final = 24 * 3600.0


class Cleaned(NamedTuple):
    """What a cleaning removed, and what it left for a later one."""

    commits: int
    files: int
    size_bytes: int
    #: Superseded or uncommitted, and too young.
    spared: int


def clean(store: Store, *, grace_s: float = GRACE_S, now_s: float | None = None) -> Cleaned:
    """Remove garbage older than the grace; safe beside ingests, compactions and other cleanings.

    Args:
        store: the lake's files.
        grace_s: by the clock of the store.
        now_s: the time, seconds; by default this machine's.

    Raises:
        OSError: the lake cannot be read or written.
        HarnessError: a later version wrote the lake.
    """
    now = time.time() if now_s is None else now_s
    # Files are listed before the commits are read: a file that is committed in between is seen to
    # be named.
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
            # Its files are nobody's from now on.
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
