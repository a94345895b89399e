"""Seals the evidence of a run when it ends: the length and digest of every file that is judged.

So a folder that was damaged afterwards (copied in part, edited, cut at a line's end, which no
reader can see) is never judged as if it were whole. A run that came to its end has a manifest that
names all its evidence; one that died has an empty one, and is judged by what its files tell. A seal
is no signature: who rewrites a file can rewrite the manifest.
"""

import hashlib
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import msgspec

from splitbrain.contracts.errors import UNREADABLE
from splitbrain.harness.folder.atomic_file import write_atomically
from splitbrain.harness.folder.refusals import tell_refusal
from splitbrain.history.course import came_to_its_end
from splitbrain.history.json_problems import in_words
from splitbrain.history.run_folder import RunFolder, is_plain_name

MANIFEST_NAME = "manifest.json"
#: Evidence that tells and convicts nobody; older versions left it unsealed.
_TOLD_FILES = ("metrics.jsonl", "leaders.jsonl")
#: Evidence directly in the run folder; what is judged, not what a judgement writes.
_FILES = (
    *("plan.json", "schedule.jsonl", "history.jsonl", "faults.jsonl", "phases.jsonl"),
    *("digests.jsonl", "scenario.json", "simulation.json", "timeline.jsonl", *_TOLD_FILES),
)
#: Evidence in each node's folder; its data folder is left alone.
_NODE_SUFFIXES = frozenset({".jsonl", ".log", ".txt", ".out", ".err"})
_BLOCK_BYTES = 1 << 20


class Seal(msgspec.Struct, frozen=True):
    """One file as the run left it."""

    length_bytes: int
    #: BLAKE2b of the content, hex.
    digest: str


def open_manifest(folder: RunFolder) -> None:
    """Say at a run's beginning that its evidence is to be sealed.

    So that a run which could not write the last of it is known for that, however it is judged.

    Raises:
        HarnessError: the disk refuses.
    """
    _write(folder, {})


def is_unsealed(folder: RunFolder) -> bool:
    """Whether the run came to its end and its evidence was never sealed."""
    try:
        content = (folder.root / MANIFEST_NAME).read_bytes()
        return came_to_its_end(folder) and not msgspec.json.decode(content, type=dict)
    except (OSError, *UNREADABLE):
        return False


def write_manifest(folder: RunFolder) -> None:
    """Seal the run folder as it is.

    Raises:
        HarnessError: a file cannot be read, or the disk refuses.
    """
    with _sealing(folder):
        seals = {str(file.relative_to(folder.root)): seal(file) for file in _evidence(folder)}
    _write(folder, seals)


def damage(folder: RunFolder, *, only: str | None = None) -> list[str]:
    """Files, or the ``only`` one, that were changed after the run, one clause each.

    There are none in a run that never sealed.
    """
    path = folder.root / MANIFEST_NAME
    try:
        seals = msgspec.json.decode(path.read_bytes(), type=dict[str, Seal])
    except FileNotFoundError:
        gone = f"{MANIFEST_NAME} is missing, and the run came to its end, where it had one"
        return [gone] if came_to_its_end(folder) else []
    except (OSError, *UNREADABLE) as error:
        return [f"{MANIFEST_NAME} cannot be read ({in_words(error)})"]
    found = [f"{name} was added since the run" for name in _unsealed(folder, seals)]
    for name, sealed in sorted(seals.items()):
        if only not in (None, name):
            continue
        if not _is_evidence(name):
            found.append(f"{MANIFEST_NAME} names {name}, which is no evidence of a run")
            continue
        try:
            now = seal(folder.root / name)
        except OSError as error:
            found.append(f"{name} cannot be read ({error.strerror})")
            continue
        if now.length_bytes != sealed.length_bytes:
            found.append(
                f"{name} has {now.length_bytes:,} of the {sealed.length_bytes:,} bytes that the "
                "run wrote"
                if now.length_bytes < sealed.length_bytes
                else f"{name} has grown since the run"
            )
        elif now != sealed:
            found.append(f"{name} was changed since the run")
    return [clause for clause in found if only is None or clause.startswith(f"{only} ")]


def _unsealed(folder: RunFolder, seals: dict[str, Seal]) -> list[str]:
    """Evidence that convicts and that the run, which sealed its own, did not leave."""
    there = [str(path.relative_to(folder.root)) for path in _evidence(folder)]
    return [name for name in there if seals and name not in (*seals, *_TOLD_FILES)]


def _is_evidence(name: str) -> bool:
    """Whether a run seals a file of that name: directly in its folder, or in a node's."""
    match name.split("/"):
        case ["nodes", node, file]:
            return is_plain_name(node) and Path(file).suffix in _NODE_SUFFIXES
        case _:
            return name in _FILES


def is_changed(folder: RunFolder, name: str) -> bool:
    """Whether one file is not as the run left it; False where nothing was sealed."""
    return any(clause.startswith(f"{name} ") for clause in damage(folder, only=name))


def seal(path: Path) -> Seal:
    """Length and digest of a file.

    Raises:
        OSError: it cannot be read.
    """
    digest, length = hashlib.blake2b(digest_size=16), 0
    with path.open("rb") as file:
        while block := file.read(_BLOCK_BYTES):
            digest.update(block)
            length += len(block)
    return Seal(length, digest.hexdigest())


def _write(folder: RunFolder, seals: dict[str, Seal]) -> None:
    content = msgspec.json.format(msgspec.json.encode(seals), indent=1)
    with _sealing(folder):
        write_atomically(folder.root / MANIFEST_NAME, content)


def _sealing(folder: RunFolder) -> AbstractContextManager[None]:
    return tell_refusal("seal the run's evidence", folder.root / MANIFEST_NAME)


def _evidence(folder: RunFolder) -> Iterator[Path]:
    yield from (path for name in _FILES if (path := folder.root / name).is_file())
    for node in folder.node_names():
        for path in sorted(folder.node(node).iterdir()):
            if path.is_file() and path.suffix in _NODE_SUFFIXES:
                yield path
