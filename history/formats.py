"""Formats of histories, guessed from the beginning of a file."""

import os
import re
from pathlib import Path
from typing import Literal, get_args

from splitbrain.contracts.errors import UsageError
from splitbrain.history.errors import HistoryError
from splitbrain.history.opening import OTHER_FILE, cannot_open, opened
from splitbrain.history.run_folder import RunFolder

Format = Literal["jsonl", "edn", "jepsen-log", "kv", "parquet", "etcd-robustness"]
#: Names of all formats, in the order in which messages list them.
FORMATS: tuple[Format, ...] = get_args(Format)

#: ``... jepsen.util - 3<tab>:ok<tab>:cas<tab>[3 0]``, in every age of Jepsen. The process is a
#: number, or a name where the message of the line begins, which ends with a tab if it has blanks.
LOG_LINE = re.compile(
    r"(?:(?:\s-|:)\s+(?P<tabbed>[^\s{\[(#\x22;][^\t]{0,99})\t+"
    r"|(?:^|(?:\s-|:)\s+)(?P<name>[^\s{\[(#\x22;]\S*)\s+"
    r"|(?:^|\s)(?P<process>\d+)\s+)"
    r":(?P<type>invoke|ok|fail|info)\s+:(?P<f>[^\s]+)\s*(?P<rest>.*)$"
)
#: Functions in the kv files of Porcupine's tests; each names its key.
KV_FUNCTIONS = frozenset({"get", "put", "append"})

_GUESS_BYTES = 1 << 16
_PARQUET_MARK = b"PAR1"
#: Beginnings of files that contain a history and are not one, and the advice for each.
_WRAPPED = (
    (b"PK\x03\x04", "it is a zip archive", "Unpack it first: unzip FILE"),
    (b"(\xb5/\xfd", "it is compressed with zstd", "Unpack it first: unzstd FILE"),
    (b"\xff\xfe", "it is UTF-16", "Save it as UTF-8"),
    (b"\xfe\xff", "it is UTF-16", "Save it as UTF-8"),
    (b"\xef\xbb\xbf", "it begins with a byte order mark", "Save it as UTF-8 without one"),
)
_ETCD_FIELDS = (b'"ClientId"', b'"Input"')


def is_history_folder(path: Path) -> bool:
    """Return whether a folder is itself a history: a Parquet table, or a report of etcd's tests."""
    return path.is_dir() and _folder_format(path) is not None


def etcd_files(path: Path) -> list[Path]:
    """Return the file of etcd's tests itself, or those of all clients below a report folder."""
    return sorted(path.glob("client-*/operations.json")) if path.is_dir() else [path]


def _folder_format(path: Path) -> Format | None:
    if next(path.glob("*.parquet"), None) is not None:
        # A run folder keeps its tables beside its history, which may be lost.
        run = RunFolder(path)
        return None if any(map(os.path.lexists, (run.plan, run.history))) else "parquet"
    return "etcd-robustness" if etcd_files(path) else None


def guess_format(path: Path) -> Format:
    """Guess the format from the beginning of the file, or from the content of the folder.

    Raises:
        HistoryError: the file cannot be opened, is empty, or looks like none of them.
    """
    if path.is_dir():
        found = _folder_format(path)
        if found is None:
            raise HistoryError(
                str(path), "the folder is no history", "Name a run folder or a history file"
            )
        return found
    begin = beginning(path)
    if begin.startswith(_PARQUET_MARK):
        return "parquet"
    for mark, problem, next_step in _WRAPPED:
        if begin.startswith(mark):
            raise HistoryError(str(path), problem, next_step)
    if not begin.strip():
        raise HistoryError(
            str(path), "it is empty", "Look whether it was copied whole, or name another file"
        )
    return _guess_text(path, begin)


def beginning(path: Path) -> bytes:
    """Return the first bytes of a file, unpacked.

    Raises:
        HistoryError: it cannot be read.
    """
    try:
        # A pipe cannot be read twice, and a device may have no end.
        if not path.is_file():
            problem = "it is no regular file" if path.exists() else "No such file or directory"
            raise HistoryError(str(path), problem, OTHER_FILE)
    except OSError as error:
        raise cannot_open(path, error) from error
    with opened(path) as file:
        return file.read(_GUESS_BYTES)


def _guess_text(path: Path, begin: bytes) -> Format:
    head = begin.decode("utf-8", errors="replace")
    # Commas are blanks in EDN.
    lines = [line for line in (line.strip(" \t\r,") for line in head.split("\n")) if line]
    if re.match(r'\{\s*"', lines[0]):
        is_etcd = all(field in begin.split(b"\n", 1)[0] for field in _ETCD_FIELDS)
        return "etcd-robustness" if is_etcd else "jsonl"
    maps = [line for line in lines if not re.match(r"\[?[\s,]*(;|$)", line)]
    if maps and re.match(r"\[?[\s,]*(#jepsen\.history\.Op\s*)?\{[\s,]*:", maps[0]):
        return "kv" if _is_kv(maps[0]) else "edn"
    if any(LOG_LINE.search(line) for line in lines):
        return "jepsen-log"
    if lines[0].startswith("["):
        problem = "it is one JSON list, not one event a line"
        raise HistoryError(str(path), problem, "Write one event a line: jq -c '.[]' FILE")
    problem = "it looks like none of the known formats"
    raise HistoryError(str(path), problem, f"Name its format with --format: {', '.join(FORMATS)}")


def _is_kv(line: str) -> bool:
    return ":key" in line and any(f":f :{name}" in line for name in KV_FUNCTIONS)


def known_format(name: str) -> Format:
    """Return the format of that name.

    Raises:
        UsageError: there is none.
    """
    for known in FORMATS:
        if name == known:
            return known
    raise UsageError(
        f"there is no history format called {name!r}", f"Choose one of: {', '.join(FORMATS)}"
    )
