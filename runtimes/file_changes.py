"""Changes files of a stopped node as a disk that lies would; for all runtimes.

Open choices of a change are settled by its draw. It believes in a change only when it has read it
back. It must never touch a file that no change names, nor the files of a running node.
"""

import random
from fnmatch import fnmatchcase

from splitbrain.contracts.arms import DataFiles, FileChange, FileChanged
from splitbrain.contracts.errors import HarnessError

_SHOWN_BYTES_MAX = 64
#: More flips than this in one change are not one fault but a wipe.
_FLIPPED_BYTES_MAX = 4_096
_BITS = 8


def change_file(files: DataFiles, change: FileChange) -> FileChanged | None:
    """Make the change; None where no file fits. HarnessError: it does not read back.

    The file is matched as a whole path, and an asterisk matches slashes too.
    """
    chance = random.Random(f"{change.draw} {change.kind} {change.file}").random
    # All that may be open is drawn first, so that no choice shifts another.
    file_share, place_share, bit_share = chance(), chance(), chance()
    fitting = _fitting(files, change)
    if not fitting:
        return None
    file = fitting[int(file_share * len(fitting))]
    if change.kind == "flip":
        return _flip(files, change, file, place_share, bit_share)
    if change.kind == "truncate":
        return _truncate(files, change, file, place_share)
    return _restore(files, file)


def _fitting(files: DataFiles, change: FileChange) -> list[str]:
    if change.kind == "restore":
        kept = sorted(file for file in files.kept() if fnmatchcase(file, change.file))
        return [file for file in kept if files.difference(file) is not None]
    smallest = change.offset or 0
    return sorted(
        file
        for file, size in files.sizes().items()
        if fnmatchcase(file, change.file) and size > smallest
    )


def _flip(
    files: DataFiles, change: FileChange, file: str, place_share: float, bit_share: float
) -> FileChanged:
    size = files.sizes()[file]
    length = max(1, min(change.length, size, _FLIPPED_BYTES_MAX))
    offset = change.offset
    if offset is None:
        offset = int(place_share * (size - length + 1))
    before = files.read(file, offset, length)
    bit = 1 << int(bit_share * _BITS)
    after = bytes(byte ^ bit for byte in before)
    files.write(file, offset, after)
    _confirm(file, files.read(file, offset, len(after)) == after)
    return FileChanged("flip", file, offset, _hex(before), _hex(after), size, size)


def _truncate(files: DataFiles, change: FileChange, file: str, place_share: float) -> FileChanged:
    size = files.sizes()[file]
    if change.offset is not None:
        end = change.offset
    elif change.length > 1:
        end = max(0, size - change.length)
    else:
        end = int(place_share * size)
    before = files.read(file, end, _SHOWN_BYTES_MAX)
    files.truncate(file, end)
    _confirm(file, files.sizes()[file] == end)
    return FileChanged("truncate", file, end, _hex(before), "", size, end)


def _restore(files: DataFiles, file: str) -> FileChanged:
    size = files.sizes().get(file, 0)
    offset = files.difference(file) or 0
    before = files.read(file, offset, _SHOWN_BYTES_MAX) if size else b""
    kept = files.kept()[file]
    files.exchange(file)
    after = files.read(file, offset, _SHOWN_BYTES_MAX)
    size_after = files.sizes()[file]
    # The kept file was in its place until now, so the two still differ, and from the same byte on.
    differs = files.difference(file) == (offset if size else None)
    _confirm(file, differs and size_after == kept)
    return FileChanged("restore", file, offset, _hex(before), _hex(after), size, size_after)


def _hex(content: bytes) -> str:
    return content[:_SHOWN_BYTES_MAX].hex()


def _confirm(file: str, reads_back: bool) -> None:
    if not reads_back:
        raise HarnessError(
            "change a file",
            file,
            "what was written does not read back",
            "Something else writes to this data folder, or its disk is broken",
        )
