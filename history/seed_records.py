"""``seeds.jsonl``: what came of each seed of a sweep, a line each, behind one line on the sweep.

The lines are written as the seeds end, so that a sweep that was killed keeps them. ``sweep.json``
is written at the end: without it the sweep did not come to its end. A reader holds the two against
each other and never takes a seed that is missing for one that did not fail.
"""

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, Literal, TypeVar

import msgspec

from splitbrain.contracts.errors import UNREADABLE
from splitbrain.history.json_problems import in_words

#: Version of the file's form.
SEEDS_SCHEMA: Final = 1
#: Names of the files.
SEEDS: Final = "seeds.jsonl"
ANSWER: Final = "sweep.json"
#: Folders of a lake, which holds no sweep's own files.
_OF_LAKES: Final = frozenset({"commits", "tables"})
_DIGEST_BYTES: Final = 5

#: ``failed`` wins over ``undecided``; ``crashed``: it could not be run.
SeedOutcome = Literal["clean", "failed", "undecided", "crashed"]


class SweepLine(msgspec.Struct, frozen=True, kw_only=True):
    """First line: the sweep."""

    schema: int = SEEDS_SCHEMA
    system: str
    #: As on the command line, and their number.
    seeds: str
    planned: int
    #: Traits that worlds had to have; None: any.
    world: str | None = None
    bugs: tuple[str, ...] = ()
    #: None: drawn by each seed.
    state_machine: str | None = None
    beyond_promise: bool = False
    patches: tuple[str, ...] = ()
    #: UTC, ISO 8601, with microseconds.
    started_at: str
    tool_version: str
    tool_commit: str | None = None


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """A checker that found something in a seed."""

    checker: str
    reason: str
    fingerprint: str
    #: The most telling violation; None where the checker describes none.
    violation: dict[str, Any] | None = None


class SeedVerdict(msgspec.Struct, frozen=True, kw_only=True):
    """Part of a seed's line that a gate reads."""

    seed: int
    outcome: SeedOutcome
    workload: str = ""
    sentence: str | None = None
    found: tuple[Found, ...] = ()
    #: The line that makes a failed seed again on any machine.
    reproduce: str | None = None


class SeedLine(SeedVerdict, frozen=True, kw_only=True):
    """One seed."""

    #: Invariant and checkers that found something.
    failed_by: tuple[str, ...] = ()
    #: Undecided checkers, each with its reason.
    unknown: dict[str, str] = {}
    trace_hash: str = ""
    steps: int = 0
    virtual_us: int = 0
    #: Acknowledged ones.
    operations: int = 0
    #: Injected faults, and those of them that took effect, once for each role that one met.
    faults: int = 0
    bitten: int = 0
    #: Counts of what happened, by name.
    figures: dict[str, int] = {}
    #: Wall time.
    seconds: float = 0.0


Line = TypeVar("Line", bound=SeedVerdict)


class _Failed(msgspec.Struct, frozen=True):
    seed: int
    folder: str | None = None


class SweepEnd(msgspec.Struct, frozen=True):
    """Part of ``sweep.json`` that readers of the seeds need."""

    exit_code: int
    not_run: int
    failures: tuple[_Failed, ...]
    #: Seeds that could not be run, the first time or again.
    crashed: tuple[int, ...]
    differed: tuple[int, ...]
    #: Seeds that have no line, since their worlds are none that were asked for.
    skipped: int = 0

    @property
    def again_otherwise(self) -> frozenset[int]:
        """Return seeds that came out differently, or not at all, when they were run again."""
        return frozenset({*self.crashed, *self.differed})


class SweepFolder:
    """The seeds in one folder; reads on demand."""

    def __init__(self, root: Path) -> None:
        """Read the sweep's own line; raise ValueError, with a clause, where it cannot be read."""
        self.root = root
        self.seeds = root / SEEDS
        try:
            with self.seeds.open("rb") as file:
                head = file.readline()
        except FileNotFoundError:
            message = f"it has no {SEEDS}: it is of an earlier version, or lost it"
            raise ValueError(message) from None
        except OSError as error:
            raise ValueError(f"{SEEDS} cannot be read ({error.strerror})") from error
        try:
            self.sweep = msgspec.json.decode(head, type=SweepLine)
        except UNREADABLE as error:
            raise ValueError(f"{SEEDS} does not begin with its sweep: {in_words(error)}") from error
        if self.sweep.schema != SEEDS_SCHEMA:
            raise ValueError(
                f"{SEEDS} has schema {self.sweep.schema}, and this version reads {SEEDS_SCHEMA}"
            )
        #: The same wherever the folder lies.
        digest = hashlib.blake2b(head, digest_size=_DIGEST_BYTES).hexdigest()
        stamp = self.sweep.started_at.partition(".")[0].replace("-", "").replace(":", "")
        self.sweep_id = f"sweep-{self.sweep.system}-{stamp}Z-{digest}"

    def end(self) -> SweepEnd | None:
        """Return the end; None where the sweep has none; raise ValueError, with a clause."""
        try:
            return msgspec.json.decode((self.root / ANSWER).read_bytes(), type=SweepEnd)
        except FileNotFoundError:
            return None
        except (OSError, *UNREADABLE) as error:
            raise ValueError(f"{ANSWER} cannot be read: {in_words(error)}") from error

    def lines(self, kind: type[Line]) -> Iterator[Line]:
        """Yield the seeds in the order of their ends; raise ValueError, with a clause.

        A last line that was not written to its end is left out.
        """
        decoder = msgspec.json.Decoder(kind)
        try:
            with self.seeds.open("rb") as file:
                file.readline()
                for number, line in enumerate(file, start=2):
                    if not line.endswith(b"\n"):
                        return
                    try:
                        yield decoder.decode(line)
                    except UNREADABLE as error:
                        raise ValueError(f"line {number} of {SEEDS}: {in_words(error)}") from error
        except OSError as error:
            raise ValueError(f"{SEEDS} cannot be read ({error.strerror})") from error


def find_sweeps(folder: Path) -> Iterator[Path]:
    """Yield folders with the files of a sweep at or below a folder; links are not followed."""
    for place, folders, files in os.walk(folder):
        if SEEDS in files or ANSWER in files:
            yield Path(place)
        if "plan.json" in files or "history.jsonl" in files or set(folders) >= _OF_LAKES:
            folders.clear()
        folders[:] = sorted(name for name in folders if not name.startswith("."))


def contradiction(sweep: SweepLine, end: SweepEnd, lines: int, failed: int) -> str | None:
    """Return how the counted lines contradict the end, one clause; None where they do not."""
    tried = sweep.planned - end.not_run - end.skipped
    if lines != tried:
        return f"{SEEDS} tells of {lines:,} seeds, and {ANSWER} of {tried:,}"
    if failed != len(end.failures):
        told = len(end.failures)
        return f"{SEEDS} tells of {failed:,} failed seeds, and {ANSWER} of {told:,}"
    return None
