"""Run folders below a folder, and the files of one as they are now.

A run counts as unchanged if its files have the same sizes and times, or else the same digests: a
folder that was copied or touched is the same run.
"""

import hashlib
import os
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import msgspec

from splitbrain.history.expectation import was_done_again
from splitbrain.history.run_folder import RunFolder
from splitbrain.spark_analysis.damage import Damage
from splitbrain.spark_analysis.lake.commits import COMMITS, Source
from splitbrain.spark_analysis.run_record import Identity

_BLOCK_BYTES: Final = 1 << 20
#: As in the seal of a run (``harness.folder.manifest``), for comparison.
_DIGEST_BYTES: Final = 16
_SEAL: Final = "manifest.json"


class _Sealed(msgspec.Struct, frozen=True):
    length_bytes: int
    digest: str


def find_runs(folder: Path) -> Iterator[Path]:
    """Yield folders of runs at or below a folder, by path; links are not followed.

    A folder with a plan or a history is a run, and nothing is looked for below it. Attempts that a
    suite has done again are left out, unless one is named itself.

    Raises:
        OSError: the folder itself cannot be listed.
    """
    os.scandir(folder).close()
    for place, folders, files in os.walk(folder):
        if "plan.json" in files or "history.jsonl" in files:
            folders.clear()
            if Path(place) == folder or not was_done_again(Path(place)):
                yield Path(place)
        elif COMMITS in folders and "tables" in folders:
            folders.clear()  # a lake
        folders[:] = sorted(name for name in folders if not name.startswith("."))


def paths_of(folder: RunFolder, nodes: Sequence[str]) -> list[Path]:
    """Return the files that an ingest reads, whether they are there or not."""
    paths = [folder.plan, folder.history, folder.faults, folder.metrics, folder.results]
    paths.append(folder.root / _SEAL)
    for node in nodes:
        place = folder.root / "nodes" / node
        paths += [place / "state_events.jsonl", place / "log.jsonl"]
    return paths


def unchanged(root: Path, paths: Sequence[Path], known: Sequence[Source]) -> bool:
    """Return whether the files are those that were read, by size and time, else by digest."""
    by_path = {source.path: source for source in known}
    present = 0
    for path in paths:
        status = _status(path)
        if status is None:
            continue
        source = by_path.get(path.relative_to(root).as_posix())
        if source is None or source.size_bytes != status.st_size:
            return False
        present += 1
        if source.modified_ns != status.st_mtime_ns and source.digest != _digest(
            path, status.st_size
        ):
            return False
    return present == len(known)


def sources_of(root: Path, paths: Sequence[Path]) -> tuple[Source, ...]:
    """Return the files as they are now, each up to its present length: a run may go on."""
    found: list[Source] = []
    for path in paths:
        status = _status(path)
        if status is not None:
            name = path.relative_to(root).as_posix()
            size = status.st_size
            found.append(Source(name, size, status.st_mtime_ns, _digest(path, size)))
    return tuple(found)


def find_missing(
    folder: RunFolder, identity: Identity, sources: Sequence[Source], damage: Damage
) -> None:
    """Report files that are missing, or not as the run sealed them."""
    present = {source.path: source for source in sources}
    if only_results(folder):
        damage.add("pruned", "Only the results of this run were kept.")
        return
    if folder.faults.name not in present:
        damage.add("no-faults", f"{folder.faults.name} is missing.")
    for node in identity.nodes:
        if not (folder.root / "nodes" / node).is_dir():
            damage.add("no-node", f"nodes/{node} is missing.")
        elif _dumps_logs(identity) and f"nodes/{node}/log.jsonl" not in present:
            damage.add("no-log", f"nodes/{node}/log.jsonl is missing.")
    _compare_with_seal(folder, present, damage)


def only_results(folder: RunFolder) -> bool:
    """Return whether a suite kept only the results, as it does for valid runs."""
    has_evidence = folder.history.exists() or (folder.root / "nodes").exists()
    return folder.results.is_file() and folder.plan.is_file() and not has_evidence


def _dumps_logs(identity: Identity) -> bool:
    return identity.plan is not None and identity.plan.declares_committed_logs


def _compare_with_seal(folder: RunFolder, present: dict[str, Source], damage: Damage) -> None:
    """Report files that were cut at a line's end, by the run's own seal."""
    if _SEAL not in present:
        return
    try:
        sealed = msgspec.json.decode((folder.root / _SEAL).read_bytes(), type=dict[str, _Sealed])
    except (OSError, ValueError) as error:
        damage.add("file-unreadable", f"{_SEAL} cannot be read ({error}).")
        return
    if not sealed:
        damage.add("unsealed", "The run never sealed its evidence: it did not end in order.")
        return
    read = {name for name in present if name not in {_SEAL, folder.results.name}}
    if folder.metrics.name not in sealed:
        read.discard(folder.metrics.name)  # older versions left it unsealed
    gone = {folder.history.name, folder.faults.name} & sealed.keys() - present.keys()
    changed = gone | {
        name
        for name in read
        if (seal := sealed.get(name)) is None
        or (seal.length_bytes, seal.digest) != (present[name].size_bytes, present[name].digest)
    }
    for name in sorted(changed):
        damage.add("changed-since", f"{name} is not as the run left it.")


def _status(path: Path) -> os.stat_result | None:
    try:
        status = path.stat()
    except OSError:
        return None
    # A pipe or a device would be read for ever.
    return status if stat.S_ISREG(status.st_mode) else None


def _digest(path: Path, size: int) -> str:
    """Return the digest of the first so many bytes, or of all that can be read."""
    digest = hashlib.blake2b(digest_size=_DIGEST_BYTES)
    try:
        with path.open("rb") as file:
            while size > 0 and (block := file.read(min(size, _BLOCK_BYTES))):
                digest.update(block)
                size -= len(block)
    except OSError as error:
        return f"unreadable: {error.strerror}"
    return digest.hexdigest()
