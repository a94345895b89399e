"""Defects that nodes' logs tell of: Python tracebacks, and lines that their system calls defects.

Both count wherever they stand, whichever life wrote them and whether or not it ended. Lines that
the system documents as harmless are passed over; so is one that states the reason for which a
fault asked the node to end. Logs are read a piece at a time: one may be a gigabyte without a line
feed.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO, Final

from splitbrain.contracts.log_pattern import LogPattern
from splitbrain.harness.judge.last_words import (
    BLOCK_BYTES,
    LINE_BYTES_MAX,
    TRACEBACK,
    node_logs,
    printable,
)
from splitbrain.history.fault_windows import FaultWindow

#: Limits of a traceback's excerpt.
_EXCERPT_BYTES_MAX: Final = 1 << 16
_EXCERPT_LINES_MAX: Final = 60


def log_defects(
    node: str, folder: Path, patterns: Sequence[LogPattern], windows: Sequence[FaultWindow]
) -> Iterator[dict[str, Any]]:
    """Yield a violation for the first traceback of each log, and the first line of each pattern."""
    compiled = [(each, each.compiled()) for each in patterns]
    defects = [(each, shape) for each, shape in compiled if not each.harmless]
    harmless = [shape for each, shape in compiled if each.harmless]
    asked = [word for window in windows if node in window.nodes for word in window.traits.reasons]

    def excused(lines: Sequence[bytes]) -> bool:
        return any(shape.search(line) for shape in harmless for line in lines)

    for path in node_logs(folder):
        excerpt = next((e for raw, e in tracebacks(path) if not excused(raw)), None)
        if excerpt is not None:
            yield {
                "kind": "traceback",
                "node": node,
                "file": path.name,
                "text": "\n".join(excerpt),
                "sentence": f"Node {node} wrote a traceback to {path.name}: {excerpt[-1].strip()}",
            }
        left = list(defects)
        for number, line in _lines(path) if left else ():
            found = next((each for each in left if each[1].search(line)), None)
            if found is None or excused([line]) or _states(asked, line):
                continue
            left.remove(found)
            yield _line_defect(node, path, number, line, found[0])


def _states(reasons: Sequence[str], line: bytes) -> bool:
    text = line.decode("utf-8", "replace").casefold()
    return any(word in text for word in reasons)


def _line_defect(
    node: str, path: Path, number: int, line: bytes, pattern: LogPattern
) -> dict[str, Any]:
    words = printable(line)
    return {
        "kind": "log-line",
        "node": node,
        "file": path.name,
        "line": number,
        "words": words,
        "pattern": pattern.regex,
        "sentence": f"Node {node} wrote to {path.name}, line {number}: {words} "
        f"({pattern.meaning.rstrip('.')}.)",
    }


def _lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """Yield a log's lines with their numbers, from 1; an endless one in pieces of one number."""
    number = 1
    with path.open("rb") as file:
        while line := file.readline(LINE_BYTES_MAX):
            yield number, line.rstrip(b"\r\n")
            number += line.endswith(b"\n")


def tracebacks(path: Path) -> Iterator[tuple[Sequence[bytes], list[str]]]:
    """Yield each Python traceback of a log: its lines, and the same up to the exception in words.

    A traceback within a JSON line has that line alone.
    """
    with path.open("rb") as file:
        for at in _places(file):
            start = max(0, at - LINE_BYTES_MAX)
            file.seek(start)
            # From the beginning of the line, where that is near.
            start += file.read(at - start).rfind(b"\n") + 1
            file.seek(start)
            lines = file.read(_EXCERPT_BYTES_MAX).splitlines()
            excerpt = _excerpt(lines[0], iter(lines[1:]))
            yield lines[: 1 if b"\\n" in lines[0] else len(excerpt)], excerpt


def _places(file: BinaryIO) -> Iterator[int]:
    """Yield where tracebacks begin; the file may be read elsewhere in between."""
    position, kept = 0, b""
    while True:
        file.seek(position)
        block = file.read(BLOCK_BYTES)
        if not block:
            return
        text, start = kept + block, position - len(kept)
        found = text.find(TRACEBACK)
        while found >= 0:
            yield start + found
            found = text.find(TRACEBACK, found + 1)
        position += len(block)
        kept = text[-len(TRACEBACK) + 1 :]


def _excerpt(first: bytes, following: Iterator[bytes]) -> list[str]:
    """Return lines from the traceback's first to the first that is not indented."""
    if b"\\n" in first:  # a JSON line holds the whole traceback
        text = first.decode("utf-8", "replace").split(TRACEBACK.decode(), 1)[1].lstrip(":")
        parts = [part for part in text.split('"')[0].split("\\n") if part.strip()]
        return [TRACEBACK.decode(), *parts[: _EXCERPT_LINES_MAX - 1]]
    lines = [first.decode("utf-8", "replace").rstrip()]
    indent = first.index(TRACEBACK)
    for line in following:
        text = line.decode("utf-8", "replace").rstrip()
        lines.append(text)
        body = text[indent:]
        if (body and not body.startswith(" ")) or len(lines) >= _EXCERPT_LINES_MAX:
            break
    return lines
