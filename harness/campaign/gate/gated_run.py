"""One run as the gate sees it, from a folder, a ledger or a lake."""

from pathlib import Path
from typing import Literal

import msgspec

from splitbrain.checker.verdict import CheckResult, Verdict
from splitbrain.harness.folder.results import FaultResult

#: One word for the outcome of a run; ``unjudged``: nobody has judged it.
Outcome = Literal["valid", "invalid", "unknown", "vacuous", "failed", "unjudged"]


class GatedRun(msgspec.Struct, frozen=True, kw_only=True):
    """A run that a gate looks at."""

    #: Unique within a selection: ``SYSTEM-register/20261121T165545Z-5``, or night and number.
    name: str
    #: None where only a ledger or a lake knows of it.
    folder: Path | None
    #: Folder or URI of its lake; ``run_id`` is its id there.
    lake: str | None = None
    run_id: str | None = None
    #: Whether the history is still there, in the folder or the lake.
    has_history: bool = False
    system: str
    version: str
    workload: str
    runtime: str
    seed: int | None
    outcome: Outcome
    sentence: str
    reproduce: str
    checkers: tuple[CheckResult, ...] = ()
    faults: tuple[FaultResult, ...] = ()
    elections: int | None = None
    longest_unavailability_ms: int | None = None
    #: Why it proves nothing, and problems around it.
    problems: tuple[str, ...] = ()
    #: A violation that its suite expects (``history.expectation``): judged by ``canary_missed``
    #: alone. Missed, as far as its ledger tells, where too few of its cell were found.
    is_canary: bool = False
    canary_missed: bool = False
    #: Name of the folder of the run that this one replays.
    replay_of: str | None = None
    #: Its folder's name, as replays state it; None: that of ``folder``.
    replayed_as: str | None = None
    #: Earlier tries that died without an outcome.
    died_before: int = 0
    #: Whether it is a seed of a sweep.
    is_seed: bool = False
    took_s: float = 0.0

    @property
    def folder_text(self) -> str | None:
        """Return the path of its folder, if it has one."""
        return None if self.folder is None else str(self.folder)

    @property
    def folder_name(self) -> str | None:
        """Return the name of its folder, as replays state it; None if it has none."""
        return self.replayed_as or (None if self.folder is None else self.folder.name)

    @property
    def invalid(self) -> tuple[CheckResult, ...]:
        """Return the violations; one result for all where no checker stated any."""
        invalid = tuple(result for result in self.checkers if result.verdict is Verdict.INVALID)
        if invalid or self.outcome != "invalid":
            return invalid
        return (CheckResult("run", Verdict.INVALID, self.sentence),)
