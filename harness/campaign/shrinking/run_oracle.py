"""Oracle that runs a plan until it is settled whether it fails as wanted k times of n.

A try with another verdict counts as one that did not fail. One that the harness could not carry out
is made again; several in a row end the search, for the next would fail too. A plan left unsettled
by the budget is not taken. Must never take a plan that did not fail often enough, nor ask twice
about one. Source: issue 6, item 6.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Final

import msgspec

from splitbrain.contracts.errors import HarnessError
from splitbrain.contracts.scenario import Scenario
from splitbrain.harness.campaign.replaying.verdicts import ReplayVerdict
from splitbrain.nemesis.search import Repetition, SearchBudget

#: Tries in a row that the harness could not carry out.
_FAILURES_MAX: Final = 3


class Try(msgspec.Struct, frozen=True, kw_only=True):
    """One run of one plan."""

    #: None: the harness could not carry it out, or the user ended it.
    verdict: ReplayVerdict | None
    folder: Path | None = None
    seconds: float = 0.0
    problem: str | None = None


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """Tries of one plan, and their outcome."""

    plan: Scenario
    step: str
    #: Of the plan, from 1 in the order of asking.
    number: int = 1
    #: Tries with a verdict, those with the wanted one, and those invalid with another.
    tried: int = 0
    failed: int = 0
    otherwise: int = 0
    #: None: the budget ended before it was settled.
    fails: bool | None = None
    #: Folders of the tries with the wanted verdict, and of all others.
    folders: tuple[Path, ...] = ()
    others: tuple[Path, ...] = ()


class Watcher:
    """Receiver of the search's progress, to be overridden."""

    def begins(self, answer: Answer) -> None:
        """Note that the next try is about to be made."""

    def took(self, answer: Answer, made: Try, *, is_same: bool) -> None:
        """Note a try."""

    def answered(self, answer: Answer) -> None:
        """Note that a plan is settled, or that the budget has ended."""


class RunOracle:
    """Oracle over plans, each asked about once; implements ``nemesis.search.Oracle``.

    ``run_plan`` makes one run of a plan by its number, from 1; ``wanted`` is the verdict, None for
    any that is invalid; ``budget`` counts the runs and ends the search.
    """

    def __init__(
        self,
        run_plan: Callable[[Scenario, int], Try],
        wanted: ReplayVerdict | None,
        asking: Repetition,
        budget: SearchBudget,
        watcher: Watcher,
    ) -> None:
        self._run_plan, self._wanted, self._asking = run_plan, wanted, asking
        self._budget, self._watcher = budget, watcher
        self._answers: dict[bytes, Answer] = {}
        self._failures = 0
        #: Smallest plan that was taken so far.
        self.best: Answer | None = None
        self.last: Answer | None = None

    @property
    def happened(self) -> None:
        """Return nothing: the next run may differ."""
        return

    @property
    def plans(self) -> int:
        """Return the number of plans asked about."""
        return len(self._answers)

    def fails(self, candidate: Scenario, step: str) -> bool:
        """Return whether a plan fails often enough; if so it is the best so far."""
        digest = msgspec.json.encode(candidate)
        before = self._answers.get(digest)
        if before is not None and before.fails is not None:
            return before.fails
        number = len(self._answers) + (before is None)
        answer = self._ask(Answer(plan=candidate, step=step, number=number))
        self._answers[digest] = self.last = answer
        if answer.fails:
            self.best = answer
        self._watcher.answered(answer)
        return answer.fails is True

    def _ask(self, answer: Answer) -> Answer:
        while True:
            fails = self._asking.settled(answer.failed, answer.tried)
            if fails is not None:
                return msgspec.structs.replace(answer, fails=fails)
            if self._budget.exhausted() is not None:
                return answer
            self._watcher.begins(answer)
            self._budget.tries += 1
            made = self._run_plan(answer.plan, answer.number)
            self._count_failures(made)
            is_same = self._is_same(made.verdict)
            answer = _with(answer, made, is_same=is_same)
            self._watcher.took(answer, made, is_same=is_same)

    def _is_same(self, verdict: ReplayVerdict | None) -> bool:
        if verdict is None:
            return False
        return verdict.is_invalid if self._wanted is None else verdict.repeats(self._wanted)

    def _count_failures(self, made: Try) -> None:
        self._failures = 0 if made.problem is None else self._failures + 1
        if self._failures >= _FAILURES_MAX:
            self._budget.broken = HarnessError(
                "shrink the run",
                f"{self._failures} tries in a row",
                made.problem or "they could not be carried out",
                "`splitbrain doctor` says what this machine lacks.",
            )


def _with(answer: Answer, made: Try, *, is_same: bool) -> Answer:
    verdict, folders = made.verdict, () if made.folder is None else (made.folder,)
    return msgspec.structs.replace(
        answer,
        tried=answer.tried + (verdict is not None),
        failed=answer.failed + is_same,
        otherwise=answer.otherwise + (verdict is not None and verdict.is_invalid and not is_same),
        folders=answer.folders + (folders if is_same else ()),
        others=answer.others + (() if is_same else folders),
    )
