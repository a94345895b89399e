"""One run as the gate sees it, from wherever its record came."""

from pathlib import Path
from typing import Literal

import msgspec

from splitbrain.checker.verdict import CheckResult, Verdict
from splitbrain.harness.folder.results import FaultResult, counted

#: One word for what came of a run; ``unjudged``: nobody has said.
Outcome = Literal["valid", "invalid", "unknown", "vacuous", "failed", "unjudged"]


class GatedRun(msgspec.Struct, frozen=True, kw_only=True):
    """A run that a gate looks at."""

    #: Unique within a selection: ``SYSTEM-register/20261121T165545Z-5``, or night and number.
    name: str
    #: None where a ledger or a lake alone knows of it.
    folder: Path | None
    #: Folder or URI of the lake that it was read from, and its id there.
    lake: str | None = None
    run_id: str | None = None
    #: What the clients saw is still there, in the folder or the lake.
    has_history: bool = False
    system: str
    version: str
    workload: str
    runtime: str
    seed: int | None
    outcome: Outcome
    #: What came of it, in one sentence.
    sentence: str
    #: The command that does it again.
    reproduce: str
    checkers: tuple[CheckResult, ...] = ()
    faults: tuple[FaultResult, ...] = ()
    elections: int | None = None
    longest_unavailability_ms: int | None = None
    #: Why it proves nothing, and what went wrong around it.
    problems: tuple[str, ...] = ()
    #: A planted bug that a suite expects to be found: judged by ``canary_missed`` alone.
    is_canary: bool = False
    canary_missed: bool = False
    #: Name of the run's folder that this one replays.
    replay_of: str | None = None
    #: Name of its own folder, as replays name it; None: that of ``folder``.
    replayed_as: str | None = None
    #: Tries before this one that died before they could tell anything.
    died_before: int = 0
    took_s: float = 0.0

    @property
    def invalid(self) -> tuple[CheckResult, ...]:
        """What its checkers found; of a violation that no checker told, one result for all."""
        found = tuple(one for one in self.checkers if one.verdict is Verdict.INVALID)
        if found or self.outcome != "invalid":
            return found
        return (CheckResult("run", Verdict.INVALID, self.sentence),)


class Selection(msgspec.Struct, frozen=True):
    """The runs that a gate was asked about."""

    runs: tuple[GatedRun, ...]
    #: What was named on the command line.
    sources: tuple[str, ...]
    #: What of it could not be read, one sentence each.
    problems: tuple[str, ...] = ()

    @property
    def judged_by_policy(self) -> tuple[GatedRun, ...]:
        """All but the canaries."""
        return tuple(run for run in self.runs if not run.is_canary)

    @property
    def text(self) -> str:
        """``12 runs of a system``."""
        systems = sorted({run.system for run in self.runs})
        named = f" of {', '.join(systems)}" if systems else ""
        return f"{counted(len(self.runs), 'run')}{named}"
