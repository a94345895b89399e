"""Last words of a node's process in its own log.

Each language runtime announces a process' end in its own way. Only the last life counts, so logs
are read from their end, at most ``SEARCHED_BYTES_MAX`` of each: a log may be a gigabyte of
anything, without a line feed. The caller knows that the process has ended; a line of a process that
goes on must never count. Sources: the runtimes' own sources and manuals (Go's ``printpanics``, the
JVM's ``hs_err`` file, Erlang's ``init``, CPython's ``traceback``, glibc's ``assert``); each form
below was seen. A system's own forms (``contracts.log_pattern``) come before these.
"""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple

import msgspec

from splitbrain.contracts.log_pattern import LogPattern
from splitbrain.contracts.runtime import KILLED_CODE

#: Of one log, from its end.
SEARCHED_BYTES_MAX: Final = 64 << 20
_SHOWN_MAX: Final = 160
LINE_BYTES_MAX: Final = 4096
#: Rank of a line that is only known to be the last one.
_LAST_LINE: Final = -9
BLOCK_BYTES: Final = 1 << 22
TRACEBACK: Final = b"Traceback (most recent call last)"
_LOG_SUFFIXES: Final = frozenset({".log", ".txt", ".out", ".err"})
#: Lines after the recognised one that may hold its message.
_FOLLOWING_MAX: Final = 60


class _Form(NamedTuple):
    #: Substring of the line; searched for first, since that is quick.
    sign: bytes
    #: Shape that the line must have; None: any.
    shape: re.Pattern[bytes] | None = None


#: Times, levels and names of containers that may stand before words; no prose.
_PREFIX: Final = rb"^(?:(?:[^\sa-z]\S*|\S+\s*\|)\s+){0,4}"
#: Forms that only the end of a process, or of its main thread, has.
_TELLING: Final = (
    # Go, and its loggers, which end the process at these levels
    _Form(b"panic: ", re.compile(_PREFIX + rb"panic: ")),
    _Form(b"fatal error: ", re.compile(_PREFIX + rb"fatal error: ")),
    _Form(b"SIGSEGV: segmentation violation"),
    _Form(b'"level":"fatal"'),
    _Form(b'"level":"panic"'),
    # Java
    _Form(b'Exception in thread "'),
    _Form(b"A fatal error has been detected by the Java Runtime Environment"),
    _Form(b"java.lang.OutOfMemoryError"),
    # Erlang
    _Form(b"Kernel pid terminated"),
    _Form(b"init terminating in do_boot"),
    # Python
    _Form(TRACEBACK),
    _Form(b"Fatal Python error: "),
    # Rust
    _Form(b"panicked at ", re.compile(rb"\bthread .{1,120}panicked at ")),
    # C and C++
    _Form(b"terminate called "),
    _Form(b"Assertion ", re.compile(rb"\bAssertion .{1,1000} failed")),
    _Form(b" detected ***", re.compile(rb"\*\*\* .{1,80} detected \*\*\*")),
    _Form(b"double free or corruption"),
    _Form(b"malloc(): "),
    _Form(b"free(): "),
    _Form(b"Sanitizer: ", re.compile(rb"==\d+==ERROR: \w+Sanitizer: ")),
    _Form(b"crashed by signal"),
    # the kernel
    _Form(b"Out of memory: Kill"),
    _Form(b" segfault at "),
)
#: Weaker forms, which count where there is no other.
_HINTING: Final = (
    _Form(b"FATAL", re.compile(rb"\bFATAL\b")),
    _Form(b"PANIC: "),
    _Form(b"CRASH REPORT"),
    _Form(b"=ERROR REPORT="),
    _Form(b"Killed", re.compile(rb"(?:^|\s)Killed\s*$")),
    _Form(b"Segmentation fault"),
    _Form(b"Bus error"),
    _Form(b"Aborted", re.compile(rb"(?:^|\s)Aborted(?: \(core dumped\))?\s*$")),
    _Form(b"Illegal instruction"),
)
#: Reasons of a killed process.
_KILLING: Final = (
    _Form(b"OutOfMemoryError"),
    _Form(b"Out of memory: Kill"),
    _Form(b"Killed", re.compile(rb"(?:^|\s)Killed\s*$")),
)
_LOOKS_MAX: Final = 1_000
#: Lines whose message is on a later line.
_MESSAGE_FOLLOWS: Final = re.compile(
    rb"panicked at [^\r\n]*:\d+:\d+:\s*$|terminate called |Runtime Environment|REPORT=*"
)

#: Exit codes of processes that ended in order or were asked to: they have no cause of death.
_IN_ORDER: Final = (0, 130, 143)


class LastWords(msgspec.Struct, frozen=True):
    """Stated reason of a process' end."""

    text: str
    file: str
    line: int
    #: False where they are only the log's last line.
    is_recognised: bool
    #: As it stands in the log; ``text`` is cut where it is long.
    whole_line: str = ""

    @property
    def place(self) -> str:
        """Return the place as ``nodes/n1/container.log:120``."""
        return f"{self.file}:{self.line}"


class _Found(msgspec.Struct, frozen=True):
    path: Path
    offset: int
    #: The higher, the more telling.
    rank: int


def node_logs(folder: Path) -> Iterator[Path]:
    """Yield text files that the node printed or logged; its data folder is left alone."""
    if not folder.is_dir():
        return
    for path in sorted(folder.iterdir()):
        if path.is_file() and path.suffix in _LOG_SUFFIXES:
            yield path


def last_words(
    run_folder: Path, node: str, exit_code: int | None, own: Sequence[LogPattern] = ()
) -> LastWords | None:
    """Return the last words in a node's logs; None where it printed nothing.

    A process with the exit code of a killed one says nothing of its own. ``own`` are the patterns
    of its system.
    """
    # Any line may be one of them.
    forms = tuple(_Form(b"\n", each.compiled()) for each in own if not each.harmless)
    logs = list(node_logs(run_folder / "nodes" / node))
    found = [place for path in logs if (place := _last(path, exit_code, forms)) is not None]
    # The most telling of all logs; among equals the log that was written last.
    found.sort(key=lambda place: (place.rank, place.path.stat().st_mtime_ns))
    return _last_words(found[-1], run_folder) if found else None


def _last(path: Path, exit_code: int | None, own: tuple[_Form, ...]) -> _Found | None:
    size = path.stat().st_size
    start = max(0, size - SEARCHED_BYTES_MAX)
    with path.open("rb") as file:
        file.seek(start)
        text = file.read(SEARCHED_BYTES_MAX)
    ranks = (own, _TELLING, _HINTING)
    if own and not text.endswith(b"\n"):
        text += b"\n"  # by which a line is found
    if exit_code == KILLED_CODE:
        ranks = (_KILLING,)
    elif exit_code in _IN_ORDER:
        # Forms of all programs would find words of other lives; a system's own say why it ends.
        ranks = (own,)
    for rank, forms in enumerate(ranks):
        offset = max((_last_of(form, text) for form in forms), default=-1)
        if offset >= 0:
            return _Found(path, start + offset, -rank)
    ended = text.rstrip()
    if not ended or exit_code == KILLED_CODE:
        return None
    return _Found(path, start + _line_start(ended, len(ended)), _LAST_LINE)


def _last_of(form: _Form, text: bytes) -> int:
    """Return the offset of the last line of this form; -1 where there is none."""
    end = len(text)
    for _ in range(_LOOKS_MAX):
        at = text.rfind(form.sign, 0, end)
        if at < 0:
            break
        start = _line_start(text, at)
        if form.shape is None or form.shape.search(_line(text, start)):
            return start
        end = at
    return -1


def _line_start(text: bytes, at: int) -> int:
    """Return the start of the line around a place, at most ``LINE_BYTES_MAX`` before it."""
    near = max(0, at - LINE_BYTES_MAX)
    return max(near, text.rfind(b"\n", near, at) + 1)


def _line(text: bytes, start: int) -> bytes:
    line = text[start : start + 2 * LINE_BYTES_MAX]
    return line.split(b"\n", 1)[0].rstrip(b"\r")


def _last_words(found: _Found, run_folder: Path) -> LastWords:
    with found.path.open("rb") as file:
        line = 1 + _line_feeds(file, found.offset)
        file.seek(found.offset)
        lines = file.read(LINE_BYTES_MAX * 4).splitlines()
    name = found.path.relative_to(run_folder).as_posix()
    whole = lines[0][:LINE_BYTES_MAX].decode("utf-8", "replace")
    return LastWords(_words(lines), name, line, found.rank != _LAST_LINE, whole)


def _line_feeds(file: BinaryIO, before: int) -> int:
    file.seek(0)
    count, left = 0, before
    while left > 0 and (block := file.read(min(left, BLOCK_BYTES))):
        count += block.count(b"\n")
        left -= len(block)
    return count


def _words(lines: list[bytes]) -> str:
    first = lines[0][:LINE_BYTES_MAX]
    if TRACEBACK in first:
        return printable(_exception(first, lines[1:]))
    if _MESSAGE_FOLLOWS.search(first):
        message = next((line for line in lines[1:8] if line.strip(b" #\r\t=")), b"")
        return printable(first.rstrip(b" :\r") + b": " + message.strip(b" #\r\t"))
    return printable(first)


def _exception(first: bytes, following: list[bytes]) -> bytes:
    if b"\\n" in first:  # a JSON line holds the whole traceback
        inside = first.split(TRACEBACK, 1)[1].split(b'"')[0]
        parts = [part.strip() for part in inside.split(b"\\n") if part.strip()]
        return parts[-1] if parts else first
    indent = first.index(TRACEBACK)
    for line in following[:_FOLLOWING_MAX]:
        body = line[indent:]
        if body.strip() and not body.startswith(b" "):
            return body
    return first


def printable(line: bytes) -> str:
    """Return a line of a log for a sentence, cut where it is long."""
    text = "".join(
        character if character.isprintable() else " "
        for character in line.decode("utf-8", "replace")
    ).strip()
    return text if len(text) <= _SHOWN_MAX else f"{text[:_SHOWN_MAX]}..."
