"""Damage to files: cut, flipped, torn apart. Every kind keeps most of the file readable."""

from collections.abc import Callable
from random import Random

_GARBAGE = (b"{", b"]", b"null", b'"x"', b"{}", b"\xff", b"{:a}", b"[1,", b"\x00", b"nil", b"1 2")


def damaged(random: Random, content: bytes, *, keep_meaning: bool = False) -> bytes:
    """The file with one fault.

    Args:
        random: where the fault is drawn from.
        content: the file.
        keep_meaning: whether no line may become one of another meaning.
    """
    ways = [way for way in _WAYS if not keep_meaning or way not in _CHANGES_MEANING]
    return random.choice(ways)(random, content) if content else content


def _cut_last_line(random: Random, content: bytes) -> bytes:
    begin = content.rstrip(b"\n").rfind(b"\n") + 1
    return content[: random.randrange(begin, len(content))]


def _without_line_feed(_random: Random, content: bytes) -> bytes:
    return content.rstrip(b"\r\n")


def _with_blanks_at_end(random: Random, content: bytes) -> bytes:
    return content + random.choice((b"\n", b"  ", b"\n\n", b" \n", b"\r\n", b"\t"))


def _flipped(random: Random, content: bytes) -> bytes:
    place = random.randrange(len(content))
    other = random.choice((content[place] ^ (1 << random.randrange(8)), random.randrange(256)))
    return content[:place] + bytes((other,)) + content[place + 1 :]


def _without_some_bytes(random: Random, content: bytes) -> bytes:
    place = random.randrange(len(content))
    return content[:place] + content[place + random.randint(1, 4) :]


def _with_changed_lines(random: Random, content: bytes) -> bytes:
    lines = content.split(b"\n")
    place, other = random.randrange(len(lines)), random.randrange(len(lines))
    way = random.randrange(4)
    if way == 0:
        del lines[place]
    elif way == 1:
        lines.insert(other, lines[place])
    elif way == 2:
        lines[place], lines[other] = lines[other], lines[place]
    else:
        lines.insert(place, random.choice(_GARBAGE))
    return b"\n".join(lines)


_CHANGES_MEANING = (_flipped, _without_some_bytes)
_WAYS: tuple[Callable[[Random, bytes], bytes], ...] = (
    _cut_last_line,
    _cut_last_line,
    _cut_last_line,
    _without_line_feed,
    _with_blanks_at_end,
    _flipped,
    _without_some_bytes,
    _with_changed_lines,
)
