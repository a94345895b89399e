"""Questions whether some operations contradict each other while all others may happen at any time.

An operation relaxed in this way loses its answer and its interval: it takes effect at any time,
before its invocation too, once or never. That keeps every valid history valid, so a contradiction
among the *members*, those not relaxed, is one of the whole history, whatever the others answered
and whenever they were open.

The members and the freed ones are one more history, put to the search. Where states are bounded,
the search in which the freed ones repeat is asked first: it cannot drown in ways to use them, and
its refutation is one. Equal freed ones beyond those that the members can need are left out, so that
a question costs as much as its members, however long the history is; then it stays undecided if
only the exact search found no order. Source: issue 7, item 6.
"""

from collections import Counter
from collections.abc import Collection, Sequence
from typing import Final

import msgspec

from splitbrain.checker.linearizability.methods.search import Search
from splitbrain.checker.linearizability.part.problem import Problem
from splitbrain.checker.models.model import Call, Model, call_of
from splitbrain.checker.verdict import Verdict
from splitbrain.contracts.budget import Budget
from splitbrain.history.records import PairedOperation

#: Equal freed operations put to the search where states are not bounded.
EQUAL_FREED_MAX: Final = 64


class AnyTimeHistory:
    """One part, by start, equal ones by index; answers questions about some of its places."""

    def __init__(
        self,
        operations: Sequence[PairedOperation],
        candidates: Collection[int],
        model: Model,
        budget: Budget,
    ) -> None:
        self._operations = operations
        self._model = model
        self._budget = budget
        #: Calls without their answers, by place.
        self._freed = [call_of(_without_answer(operation), model) for operation in operations]
        example = dict(zip(self._freed, operations, strict=True))
        useful = example.keys() - self._useless(candidates)
        #: Calls that may matter to a candidate: one operation of each, and their number.
        self._example = {call: operation for call, operation in example.items() if call in useful}
        self._count_by_call = Counter(call for call in self._freed if call in useful)
        self._process = min((operation.process for operation in operations), default=0)
        #: Configurations looked at so far.
        self.configurations = 0

    def contradict(self, members: Collection[int], configurations_max: int) -> bool | None:
        """Return whether operations at these places contradict each other; None if undecided."""
        if self._budget.exhausted() is not None:
            return None
        kept = [self._operations[place] for place in sorted(members)]
        taken = Counter(self._freed[place] for place in members)
        left = {call: count - taken[call] for call, count in self._count_by_call.items()}
        left = {call: count for call, count in left.items() if count}
        needed = self._copies_needed(len(kept))
        until = self.configurations + configurations_max
        if self._model.bounded_states:
            freed = self._copies(kept, dict.fromkeys(left, 1))
            repeated = Problem([*freed, *kept], self._model, unlimited=range(len(freed)))
            if self._search(repeated, until) is Verdict.INVALID:
                return True
        freed = self._copies(kept, {call: min(count, needed) for call, count in left.items()})
        verdict = self._search(Problem([*freed, *kept], self._model), until)
        if verdict is Verdict.INVALID and any(count > needed for count in left.values()):
            return None
        return None if verdict is Verdict.UNKNOWN else verdict is Verdict.INVALID

    def _useless(self, candidates: Collection[int]) -> frozenset[Call]:
        """Return freed calls that cannot have led to any candidate's answer."""
        members = [self._operations[place] for place in candidates]
        known = {call_of(operation, self._model) for operation in members if operation.type == "ok"}
        unanswered = {
            call_of(operation, self._model) for operation in members if operation.type != "ok"
        }
        pure = frozenset(call for call in self._freed if self._model.is_pure(call))
        return pure | self._model.droppable({*self._freed, *unanswered}, known)

    def _copies_needed(self, members: int) -> int:
        """Return how many equal freed operations suffice the members, or nearly always do."""
        if self._model.bounded_states:
            # Between two members the shortest way to a state passes no state twice.
            return members + 1
        return max(EQUAL_FREED_MAX, members + 1)

    def _copies(
        self, kept: Sequence[PairedOperation], counts: dict[Call, int]
    ) -> list[PairedOperation]:
        """Return freed operations, open from the beginning, of processes of their own."""
        begin = min((operation.start for operation in kept), default=0)
        examples = [self._example[call] for call, count in counts.items() for _ in range(count)]
        return [
            msgspec.structs.replace(
                _without_answer(example),
                index=number - len(examples),
                process=self._process - 1 - number,
                start=begin,
                end=None,
            )
            for number, example in enumerate(examples)
        ]

    def _search(self, problem: Problem, until: int) -> Verdict:
        left = until - self.configurations
        if left <= 0:
            return Verdict.UNKNOWN
        outcome = Search(problem, self._budget, left).run()
        self.configurations += outcome.configurations
        return outcome.verdict


def _without_answer(operation: PairedOperation) -> PairedOperation:
    return msgspec.structs.replace(operation, type="info", result=None)
