"""Findings of a checker, counted in full and described in part, and the result made of them. Pure.

A judgement cut short, by its budget or by an operation that makes no sense, is ``unknown`` with its
reason, never ``valid``.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from splitbrain.checker.evidence import describe_operation
from splitbrain.checker.verdict import CheckResult, Verdict
from splitbrain.contracts.budget import Budget, seldom_collected
from splitbrain.history.edn_values import is_number, size_of
from splitbrain.history.records import PairedOperation

#: Findings of each kind that are described.
NAMED_MAX = 20
#: Steps between two polls of the budget.
POLL_INTERVAL = 4096


class Undecided(Exception):
    """Signal that nothing can be said; carries the reason, a clause."""


class Poll:
    """Poll of a budget every ``POLL_INTERVAL`` steps, the first one included."""

    def __init__(self, budget: Budget) -> None:
        self._budget = budget
        self._left = 0

    def __call__(self, steps: int = 1) -> None:
        """Go on by so many steps.

        Raises:
            Undecided: the budget ended.
        """
        if self._left <= 0:
            self._left = POLL_INTERVAL
            reason = self._budget.exhausted()
            if reason is not None:
                raise Undecided(reason)
        self._left -= steps


class Findings:
    """Findings of one checker in one history.

    ``kinds`` are those of violations, most telling first; ``harmless`` ones are observations only.
    """

    def __init__(
        self, checker: str, budget: Budget, kinds: Sequence[str], harmless: Sequence[str] = ()
    ) -> None:
        self._checker = checker
        self.poll = Poll(budget)
        self._kinds = tuple(kinds)
        self._harmless = tuple(harmless)
        self._named: dict[str, list[dict[str, Any]]] = {kind: [] for kind in (*kinds, *harmless)}
        #: By kind.
        self.counts = dict.fromkeys(self._named, 0)

    def note(
        self,
        kind: str,
        operations: Sequence[PairedOperation],
        sentence: Callable[[], str],
        count: int = 1,
        details: Mapping[str, Any] | None = None,
    ) -> None:
        """Count findings of a kind, and describe the first ``NAMED_MAX``, with further fields."""
        self.counts[kind] += count
        if len(self._named[kind]) == NAMED_MAX:
            return
        self._named[kind].append(
            {
                "kind": kind,
                "key": operations[0].key,
                "sentence": sentence(),
                "operations": [
                    {"index": operation.index, "text": describe_operation(operation)}
                    for operation in operations
                ],
                **(details or {}),
            }
        )

    def only_counts(self, *kinds: str) -> bool:
        """Count one more of each kind if enough of all of them are described; return whether so."""
        if any(len(self._named[kind]) < NAMED_MAX for kind in kinds):
            return False
        for kind in kinds:
            self.counts[kind] += 1
        return True

    def conclude(self, judge: Callable[[], tuple[dict[str, Any], str, str | None]]) -> CheckResult:
        """Make the result of a judgement, which notes findings.

        It returns figures, the reason for ``valid``, and the reason for ``unknown``, if so.
        """
        figures: dict[str, Any] = {}
        valid_reason = unfinished = ""
        undecided = None
        try:
            with seldom_collected():
                figures, valid_reason, undecided = judge()
        except Undecided as ended:
            unfinished = undecided = f"Not finished: {ended}."
        # Violations noted before the failure stand.
        except Exception as error:
            if not any(self.counts[kind] for kind in self._kinds):
                raise
            unfinished = f"Not finished: {error!r}."
        wrong = [kind for kind in self._kinds if self.counts[kind]]
        verdict, reason = Verdict.VALID, valid_reason
        if wrong:
            verdict = Verdict.INVALID
            counts = "; ".join(f"{self.counts[kind]:,} {kind}" for kind in wrong)
            reason = f"{counts}: {self._named[wrong[0]][0]['sentence']} {unfinished}".rstrip()
        elif undecided is not None:
            verdict, reason = Verdict.UNKNOWN, undecided
        return CheckResult(
            checker=self._checker,
            verdict=verdict,
            reason=reason,
            figures={**figures, **self.counts} if figures or wrong else {},
            violations=tuple(found for kind in wrong for found in self._named[kind]),
            observations=tuple(found for kind in self._harmless for found in self._named[kind]),
            undecided=undecided or unfinished or None,
        )


def by_key(operations: Sequence[PairedOperation]) -> Mapping[str | None, list[PairedOperation]]:
    """Group operations by key, in their order."""
    found: dict[str | None, list[PairedOperation]] = {}
    for operation in operations:
        found.setdefault(operation.key, []).append(operation)
    return found


def number_of(operation: PairedOperation, value: object) -> int | float:
    """Return a value that must be a number.

    Raises:
        Undecided: it is none.
    """
    if is_number(value):
        return size_of(value)
    raise Undecided(f"{describe_operation(operation)} needs a number, and not {value!r}")


def end_of(operation: PairedOperation) -> int:
    """Return the return time of a completed operation, ns."""
    assert operation.end is not None, f"operation {operation.index} is ok and has no end"
    return operation.end


def of_key(key: str | None) -> str:
    """Return `` of key a``, nothing where there is no key."""
    return "" if key is None else f" of key {key}"
