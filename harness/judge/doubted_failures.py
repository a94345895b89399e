"""Look whether changes that clients called failed explain a violation, were they unknown instead.

A client that says ``fail`` where it cannot know makes a system look worse than it is. It is a hint
for whoever looks for the cause, and changes no verdict. Reads are left alone: they change nothing.
So are failures that came as fast as answers do: where hundreds of changes are refused at once, some
of them would explain any violation, and a refusal is a thing that a client does know.
"""

import time
from collections.abc import Callable, Collection, Sequence
from typing import Final

import msgspec

from splitbrain.checker.evidence import Evidence
from splitbrain.checker.names import evidence_needed
from splitbrain.checker.verdict import CheckResult, Verdict, merge
from splitbrain.harness.console.plain_text import value_text
from splitbrain.harness.judge.checking import check_all
from splitbrain.harness.pool.limits import Limits
from splitbrain.history.functions import only_reads
from splitbrain.history.records import PairedOperation

#: Seconds that the look may take, whatever there is to judge.
_LOOK_S: Final = 10.0
#: Share of the acknowledged changes that were faster than a failure that is doubted.
_ANSWERED_SHARE: Final = 0.9


def with_doubts(
    checks: Sequence[CheckResult],
    evidence: Evidence,
    limits: Limits,
    give_up: Callable[[], str | None],
) -> list[CheckResult]:
    """Return the results, with a sentence where failed changes explain all that was found.

    Checkers that need more than the history have no part in it: what a log holds stays there.
    """
    found = [
        check.checker
        for check in checks
        if check.verdict is Verdict.INVALID and not evidence_needed(check.checker)
    ]
    failed = _slow_failures(evidence) if found else []
    if not failed:
        return [*checks]
    end_s = time.monotonic() + _LOOK_S

    def is_enough() -> str | None:
        return give_up() or ("it took too long" if time.monotonic() > end_s else None)

    quick = msgspec.structs.replace(limits, time_budget_s=_LOOK_S, took=None)
    unknown = {operation.index for operation in failed}
    if verdict_with_unknown(unknown, found, evidence, quick, is_enough) is not Verdict.VALID:
        return [*checks]
    named = next(check for check in checks if check.checker == found[0])
    keys = {violation.get("key") for violation in named.violations}
    example = next((operation for operation in failed if operation.key in keys), failed[0])
    sentence = _sentence(len(failed), example)
    return [
        msgspec.structs.replace(check, reason=f"{check.reason} {sentence}")
        if check.checker in found
        else check
        for check in checks
    ]


def _slow_failures(evidence: Evidence) -> list[PairedOperation]:
    """Return the changes that failed, and took longer than nearly all that were acknowledged."""
    changes = [
        (operation, operation.end - operation.start)
        for operation in evidence.operations
        if operation.end is not None
        and not only_reads(evidence.functions, operation.f, operation.argument)
    ]
    took = sorted(lasted for operation, lasted in changes if operation.type == "ok")
    least = took[int(len(took) * _ANSWERED_SHARE)] if took else 0
    return [each for each, lasted in changes if each.type == "fail" and lasted >= least]


def verdict_with_unknown(
    unknown: Collection[int],
    names: Sequence[str],
    evidence: Evidence,
    limits: Limits,
    give_up: Callable[[], str | None] = lambda: None,
) -> Verdict:
    """Return the worst verdict of these checkers with the operations of these indexes as info."""
    operations = tuple(
        msgspec.structs.replace(each, type="info", end=None) if each.index in unknown else each
        for each in evidence.operations
    )
    doubted = msgspec.structs.replace(evidence, operations=operations)
    return merge(check.verdict for check in check_all(names, doubted, limits, give_up))


def _sentence(count: int, example: PairedOperation) -> str:
    argument = "" if example.argument is None else f" {value_text(example.argument)}"
    key = "" if example.key is None else f" to {value_text(example.key)}"
    named = f"{example.f}{argument}{key} of process {example.process}"
    what = (
        f"the change that its client called failed, {named}, explains it"
        if count == 1
        else f"the {count:,} changes that clients called failed, such as {named}, explain it"
    )
    return f"Taken for unknown, {what}: look whether its client may say fail there."
