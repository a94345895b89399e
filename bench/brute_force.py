"""Counts small random histories on which the checker of transactions agrees with a brute force.

``python -m bench.brute_force [--kinds NAMES] [--levels NAMES] [--histories 0:100000]
[--minutes 30] [--ledger FILE]``

Each history has a number, from which it is drawn: of those with even numbers the level holds, those
with odd ones violate it (``tests/unit/checker/transactions``). All kinds and levels go on together,
a hundred histories at a time. A ledger is a file of JSON lines that is only added to; what is in it
is not done again while the sources of the checker and of the brute force are the same, so that
counting can be stopped at any time, and shared out by ranges. The exit code is 1 where the two
disagree. The last line is one JSON object.
"""

import argparse
import hashlib
import json
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import msgspec

from bench.mutant_rooms import ROOT
from bench.trace_hashes import seeds_of
from splitbrain.checker.transactions.levels import Kind
from tests.unit.checker.transactions import test_against_brute_force as keyed
from tests.unit.checker.transactions import test_rows_against_brute_force as of_rows
from tests.unit.checker.transactions.small_transactions import (
    random_open_transactions,
    random_transactions,
)

_STEP: Final = 100
_SOURCES: Final = ("checker/transactions", "tests/unit/checker/transactions")
#: Judges histories of a level by their numbers; raises AssertionError at a disagreement.
Judge = Callable[[str, range], None]


def _of_keys(kind: Kind, draw: keyed.Draw) -> Judge:
    return lambda level, numbers: keyed.agree_with_brute_force(kind, level, numbers, draw)


#: Levels and judge of each kind of histories; those of open orders are drawn apart.
_KINDS: Final[dict[str, tuple[list[str], Judge]]] = {
    "list-append": (keyed.JUDGED, _of_keys("list-append", random_transactions)),
    "rw-register": (keyed.JUDGED, _of_keys("rw-register", random_transactions)),
    "list-append:open": (keyed.SOLVED, _of_keys("list-append", random_open_transactions)),
    "rw-register:open": (keyed.SOLVED, _of_keys("rw-register", random_open_transactions)),
    "rows": (of_rows.JUDGED, of_rows.agree_with_brute_force),
}


class Entry(msgspec.Struct, frozen=True):
    """Histories on which the two agree."""

    kind: str
    level: str
    #: Numbers from ``first`` on, without ``end``.
    first: int
    end: int
    #: Digest of the sources.
    sources: str


def digest() -> str:
    """Digest of the sources of the checker and of the brute force."""
    found = hashlib.sha256()
    for folder in _SOURCES:
        for path in sorted((ROOT / folder).glob("*.py")):
            found.update(f"{path.name}\n".encode() + path.read_bytes())
    return found.hexdigest()[:16]


class Ledger:
    """Entries, kept in a file if there is one."""

    def __init__(self, path: Path | None, sources: str) -> None:
        self._path = path
        #: First numbers that are done, by kind and level.
        self.done: dict[tuple[str, str], set[int]] = {}
        content = path.read_bytes() if path is not None and path.exists() else b""
        # An interrupted line is left out; the next one begins behind it.
        for line in content[: content.rfind(b"\n") + 1].splitlines():
            entry = msgspec.json.decode(line, type=Entry)
            if entry.sources == sources:
                self._note(entry)

    def _note(self, entry: Entry) -> None:
        self.done.setdefault((entry.kind, entry.level), set()).add(entry.first)

    def add(self, entry: Entry) -> None:
        """Note an entry."""
        self._note(entry)
        if self._path is not None:
            with self._path.open("ab") as file:
                file.write(msgspec.json.encode(entry) + b"\n")


def steps(
    kinds: list[str], levels: list[str] | None, numbers: range
) -> Iterator[tuple[str, str, range]]:
    """Yield parts of the numbers for each kind and level, all of the first numbers first."""
    for first in range(numbers.start, numbers.stop, _STEP):
        for kind in kinds:
            for level in _KINDS[kind][0]:
                if levels is None or level in levels:
                    yield kind, level, range(first, first + _STEP)


def main() -> int:
    """Count; exit code 1 at a disagreement."""
    parser = argparse.ArgumentParser(prog="python -m bench.brute_force")
    parser.add_argument("--kinds", default=",".join(_KINDS), help="with commas between")
    parser.add_argument("--levels", help="with commas between; all by default")
    parser.add_argument("--histories", type=seeds_of, default=range(100_000))
    parser.add_argument("--minutes", type=float, default=float("inf"), help="then it ends")
    parser.add_argument("--ledger", type=Path)
    options = parser.parse_args()
    kinds: list[str] = options.kinds.split(",")
    if not set(kinds) <= _KINDS.keys():
        parser.error(f"choose kinds out of: {', '.join(_KINDS)}")
    levels = options.levels.split(",") if options.levels else None
    if options.histories.start % _STEP or options.histories.stop % _STEP:
        parser.error(f"a range begins and ends at a multiple of {_STEP}")
    sources = digest()
    ledger = Ledger(options.ledger, sources)
    end_s = time.monotonic() + 60 * options.minutes
    cpu_s = time.process_time()
    for kind, level, numbers in steps(kinds, levels, options.histories):
        if time.monotonic() > end_s:
            break
        if numbers.start in ledger.done.get((kind, level), ()):
            continue
        try:
            _KINDS[kind][1](level, numbers)
        except AssertionError as error:
            sys.stdout.write(f"{kind} {level}: they disagree: {error}\n")
            return 1
        ledger.add(Entry(kind, level, numbers.start, numbers.stop, sources))
    counts = {f"{kind} {level}": len(done) * _STEP for (kind, level), done in ledger.done.items()}
    for name, count in sorted(counts.items()):
        sys.stdout.write(f"{name:<55}{count:>8,}\n")
    told = {
        "histories": sum(counts.values()),
        "least": min(counts.values(), default=0),
        "cpu_s": round(time.process_time() - cpu_s, 1),
        "sources": sources,
    }
    sys.stdout.write(json.dumps(told) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
