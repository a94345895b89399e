"""Failures of the runs, by fingerprint: quarantined or not, and new, known or resolved.

One failure may stand behind many runs. A quarantine spares a failure until the end of its last day,
UTC; then it fails again, and that is said. Must never let a quarantine spare another fingerprint
than the one that it names.
"""

import datetime as dt
from collections.abc import Sequence

import msgspec

from splitbrain.checker.fingerprints import Fingerprint, fingerprint_of
from splitbrain.checker.verdict import CheckResult
from splitbrain.harness.campaign.gate.gated_run import GatedRun
from splitbrain.harness.campaign.gate.policy import Quarantine


class Case(msgspec.Struct, frozen=True):
    """Finding of one checker that said invalid of one run."""

    run: GatedRun
    result: CheckResult


class Failure(msgspec.Struct, frozen=True):
    """All cases of one fingerprint."""

    fingerprint: Fingerprint
    cases: tuple[Case, ...]
    quarantine: Quarantine | None = None
    is_expired: bool = False
    #: None where there is no reference to compare with.
    is_new: bool | None = None

    @property
    def is_spared(self) -> bool:
        """Return whether a quarantine in force covers it."""
        return self.quarantine is not None and not self.is_expired

    @property
    def text(self) -> str:
        """Return its fingerprint."""
        return self.fingerprint.text


class Failures(msgspec.Struct, frozen=True):
    """All failures of a selection, compared with the quarantines and a reference."""

    #: New ones first, then those that are not spared, then the most frequent.
    all: tuple[Failure, ...]
    resolved: tuple[str, ...]
    idle: tuple[Quarantine, ...]

    @property
    def counting(self) -> tuple[Failure, ...]:
        """Return those that no quarantine spares."""
        return tuple(failure for failure in self.all if not failure.is_spared)

    @property
    def spared(self) -> tuple[Failure, ...]:
        """Return those that a quarantine spares."""
        return tuple(failure for failure in self.all if failure.is_spared)

    def of(self, result: CheckResult) -> Failure | None:
        """Return the failure that a checker's finding belongs to."""
        fingerprint = fingerprint_of(result)
        return next((failure for failure in self.all if failure.fingerprint == fingerprint), None)


def find_failures(
    runs: Sequence[GatedRun],
    quarantines: Sequence[Quarantine],
    today: dt.date,
    reference: frozenset[str] | None,
) -> Failures:
    """Group the findings of the checkers by fingerprint.

    ``runs`` hold no canaries; ``today`` is UTC; ``reference`` holds the fingerprints to compare
    with, None without one.
    """
    cases: dict[Fingerprint, list[Case]] = {}
    for run in runs:
        for result in run.invalid:
            fingerprint = fingerprint_of(result)
            assert fingerprint is not None, "an invalid result always has a fingerprint"
            cases.setdefault(fingerprint, []).append(Case(run, result))
    by_fingerprint = {quarantine.fingerprint: quarantine for quarantine in quarantines}
    failures: list[Failure] = []
    for fingerprint, members in cases.items():
        # A quarantine may be older than the names of anomalies.
        quarantine = by_fingerprint.get(fingerprint.text) or by_fingerprint.get(
            fingerprint.before_names or ""
        )
        is_expired = quarantine is not None and quarantine.until < today
        is_new = None if reference is None else not fingerprint.is_among(reference)
        failures.append(Failure(fingerprint, tuple(members), quarantine, is_expired, is_new))
    met = {failure.text for failure in failures}
    met.update(before for f in failures if (before := f.fingerprint.before_names) is not None)
    return Failures(
        all=tuple(sorted(failures, key=_urgency)),
        resolved=tuple(sorted((reference or frozenset()) - met)),
        idle=tuple(quarantine for quarantine in quarantines if quarantine.fingerprint not in met),
    )


def _urgency(failure: Failure) -> tuple[bool, bool, int, str]:
    return failure.is_spared, failure.is_new is False, -len(failure.cases), failure.text
