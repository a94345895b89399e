"""Ledger of each mutant, stage by stage, and the scores that follow.

The ledger is a file of JSON lines, one for each stage that was run; it is only added to, so a
campaign can be stopped at any time and continued, and campaigns with other draws add up. A later
line about the same mutant and stage counts instead of the earlier one. A result of seeds counts
only for the range that is asked for, unless one of them killed: more seeds may see more. Where the
file that a mutant is part of has another text by now, its results count no more.

Must never count a mutant as killed because it could not be run.
"""

import math
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

import msgspec

from bench.mutant_child import StageResult
from bench.mutant_sites import Mutant

#: Of the normal distribution, for an interval of 95 %.
_NORMAL_95: Final = 1.96


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """One stage of one mutant."""

    mutant: Mutant
    stage: str
    #: Input of the stage, where that varies: a range of seeds.
    extent: str = ""
    #: Digest of the file that the mutant was made of; empty: nobody noted it.
    source: str = ""
    result: StageResult


class Score(msgspec.Struct, frozen=True, kw_only=True):
    """How many of how many mutants were noticed."""

    mutants: int
    killed: int

    @property
    def percent(self) -> float:
        """Of those that were run; 0 of none."""
        return round(100 * self.killed / self.mutants, 1) if self.mutants else 0.0

    @property
    def interval(self) -> tuple[float, float]:
        """Where the share of all mutants lies with 95 % confidence, in percent (Wilson 1927)."""
        if not self.mutants:
            return 0.0, 100.0
        count, share, z = self.mutants, self.killed / self.mutants, _NORMAL_95
        middle = share + z * z / (2 * count)
        half = z * math.sqrt(share * (1 - share) / count + z * z / (4 * count * count))
        whole = 1 + z * z / count
        return round(100 * (middle - half) / whole, 1), round(100 * (middle + half) / whole, 1)


class Ledger:
    """The newest entry of every mutant and stage."""

    def __init__(self, path: Path | None = None, sources: Mapping[str, str] | None = None) -> None:
        """``path``: where entries are kept; None: in memory only.

        ``sources``: by file, the digest of its present text; None: entries of any text count.
        """
        self._path = path
        self._entries: dict[str, dict[str, Entry]] = {}
        if path is not None and path.exists():
            # A torn last line is what an interrupted campaign leaves; the next one begins there.
            content = path.read_bytes()
            complete = content[: content.rfind(b"\n") + 1]
            if len(complete) < len(content):
                os.truncate(path, len(complete))
            for line in complete.splitlines():
                entry = msgspec.json.decode(line, type=Entry)
                if sources is None or entry.source == sources.get(entry.mutant.file):
                    self._take(entry)

    @property
    def mutants(self) -> tuple[Mutant, ...]:
        """All that are known, in the order in which they were first run."""
        return tuple(next(iter(stages.values())).mutant for stages in self._entries.values())

    def add(self, entry: Entry) -> None:
        """Take a result, and keep it."""
        self._take(entry)
        if self._path is not None:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            with self._path.open("ab") as file:
                file.write(msgspec.json.encode(entry) + b"\n")

    def forget(self, identities: Iterable[str]) -> None:
        """Let these mutants be run again; what the file says of them counts until then."""
        for identity in identities:
            self._entries.pop(identity, None)

    def result(self, identity: str, stage: str, extent: str = "") -> StageResult | None:
        """Return the known result of a stage; None if it must be run."""
        entry = self._entries.get(identity, {}).get(stage)
        if entry is None or (entry.result.killed_by is None and entry.extent != extent):
            return None
        return entry.result

    def killed_by(self, identity: str) -> tuple[str, str] | None:
        """Stage and test that noticed the mutant first; None: it lives."""
        for stage, entry in self._entries.get(identity, {}).items():
            if entry.result.killed_by is not None:
                return stage, entry.result.killed_by
        return None

    def survivors(self) -> tuple[Mutant, ...]:
        """Those that nothing has noticed."""
        return tuple(mutant for mutant in self.mutants if self.killed_by(mutant.id) is None)

    def score(self, file: str | None = None) -> Score:
        """Over all mutants, or those of one file."""
        chosen = [mutant for mutant in self.mutants if file in (None, mutant.file)]
        killed = sum(self.killed_by(mutant.id) is not None for mutant in chosen)
        return Score(mutants=len(chosen), killed=killed)

    def stage_score(self, stage: str) -> Score:
        """Share of mutants that one stage noticed."""
        results = [stages[stage].result for stages in self._entries.values() if stage in stages]
        killed = sum(result.killed_by is not None for result in results)
        return Score(mutants=len(results), killed=killed)

    def first_kills(self, stages: Sequence[str]) -> dict[str, int]:
        """How many mutants each stage was the first to notice, in the order of the stages."""
        counts = dict.fromkeys(stages, 0)
        for entries in self._entries.values():
            for stage in stages:
                if stage in entries and entries[stage].result.killed_by is not None:
                    counts[stage] += 1
                    break
        return counts

    def _take(self, entry: Entry) -> None:
        self._entries.setdefault(entry.mutant.id, {})[entry.stage] = entry
