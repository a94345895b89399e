"""Anomalies that a system documents: taken out of a checker's violations and counted. Pure.

A result must describe one violation of each kind that it found, and tell beside them why not all
was judged (``CheckResult.undecided``): then nothing else hides behind what is allowed. All checkers
of this room do. A result that is left without violations is ``valid`` only where all was judged.
"""

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from splitbrain.checker.verdict import ALLOWED, CheckResult, Verdict
from splitbrain.contracts.system import AllowedAnomaly

#: Figures that count a kind under another name.
_COUNTED_AS: Final[Mapping[str, str]] = {
    "not-linearizable": "parts-invalid",
    "digests-differ": "positions-differing",
    "different-committed-records": "conflicting-offsets",
    "two-leaders-in-one-epoch": "epochs-with-two-leaders",
    "success-without-record": "groundless-successes",
}


def with_allowed(result: CheckResult, allowed: Sequence[AllowedAnomaly]) -> CheckResult:
    """Return a checker's result, its violations of allowed kinds made counted observations."""
    of_checker = (anomaly for anomaly in allowed if anomaly.checker == result.checker)
    reasons = {anomaly.kind: anomaly.why for anomaly in of_checker}
    found = [violation for violation in result.violations if violation.get("kind") in reasons]
    if result.verdict is not Verdict.INVALID or not found:
        return result
    left = tuple(
        violation for violation in result.violations if violation.get("kind") not in reasons
    )
    counts = {kind: count_of(result, kind) for kind in _kinds(found)}
    listed = "; ".join(f"{count:,} {kind} ({reasons[kind]})" for kind, count in counts.items())
    if left:
        wrong = "; ".join(f"{count_of(result, kind):,} {kind}" for kind in _kinds(left))
        verdict, reason = Verdict.INVALID, f"{wrong}: {left[0].get('sentence', '')}"
        reason = f"{reason} {result.undecided or ''}".rstrip()
    elif result.undecided is not None:
        verdict, reason = Verdict.UNKNOWN, result.undecided
    else:
        verdict, reason = Verdict.VALID, "Nothing was found but what the system documents."
    return msgspec.structs.replace(
        result,
        verdict=verdict,
        reason=f"{reason} Allowed: {listed}.",
        figures={**result.figures, ALLOWED: counts},
        violations=left,
        observations=(*found, *result.observations),
    )


def _kinds(violations: Sequence[Mapping[str, object]]) -> list[str]:
    return list(dict.fromkeys(str(violation.get("kind")) for violation in violations))


def count_of(result: CheckResult, kind: str) -> int:
    """Return how many of a kind were found, or, where no figure tells, how many are described."""
    figure = result.figures.get(_COUNTED_AS.get(kind, kind))
    if isinstance(figure, int):
        return figure
    return sum(violation.get("kind") == kind for violation in result.violations)
