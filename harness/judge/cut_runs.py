"""What is said of a simulated run whose world ended where an invariant did not hold; pure.

Nothing was healed after it, nothing came to agree and nothing was read back. The checkers of
outcomes judge such a run all the same, as it was at that moment; what they miss in it is the
world's end and no doing of the system. Must never change a verdict.
"""

from collections.abc import Iterable

import msgspec

from splitbrain.checker.names import STATE_EVENTS, can_judge
from splitbrain.checker.verdict import CheckResult, Verdict
from splitbrain.contracts.fault import US_PER_MS
from splitbrain.contracts.scenario import Violation


def how_the_world_ended(violation: Violation) -> str:
    """Where the run was cut, and what that means for all other checkers; one sentence."""
    return (
        f"The world ended {violation.time_us / US_PER_MS:,.3f} ms into the run, in step "
        f"{violation.step:,}, where {violation.invariant} was violated: nothing was healed or read "
        "back after that, and all other checkers judged the run as cut there."
    )


def with_reasons_of_a_cut_run(
    checks: Iterable[CheckResult], violation: Violation
) -> list[CheckResult]:
    """The results; what could not be decided blames the cut instead of what never came."""
    return [
        check if check.verdict is not Verdict.UNKNOWN else _excused(check, violation)
        for check in checks
    ]


def _excused(check: CheckResult, violation: Violation) -> CheckResult:
    reason = f"Not decided: the world ended where {violation.invariant} was violated"
    if not can_judge(check.checker, {STATE_EVENTS}):
        told = f"{reason}, before its nodes could agree."
    else:
        told = f"{reason} ({check.reason.rstrip('.')})."
    return msgspec.structs.replace(check, reason=told)
