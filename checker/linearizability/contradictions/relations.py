"""Relations of answers to operations that explain them, from the model's steps alone.

Works for any model: it looks at the states that the search met. Must never claim that an answer has
a single source unless no other operation of the part, and not the initial state, can give it.
"""

from collections.abc import Sequence

from splitbrain.checker.explanation import Relation, precedes
from splitbrain.checker.linearizability.part.problem import ILLEGAL, Problem
from splitbrain.checker.models.model import Model
from splitbrain.history.records import PairedOperation

#: States looked at; the first ones are enough for an explanation.
STATES_MAX = 400
#: Sources of one answer with edges, the latest ones.
SOURCES_SHOWN_MAX = 4
#: Label of a source that others certainly followed before the answer.
TOO_OLD = "had nothing followed"
#: Sources shown where all of them are too old.
SOURCES_TOO_OLD_SHOWN_MAX = 2


class Relations:
    """Relations of one compiled part."""

    def __init__(self, problem: Problem, model: Model) -> None:
        self._problem = problem
        self._model = model
        self._after = problem.transitions.after
        self._number_by_index = {
            operation.index: problem.call_by_place[place]
            for place, operation in enumerate(problem.operations)
        }
        self._explains: dict[tuple[int, int], bool] = {}
        self._spoils: dict[tuple[int, int], bool] = {}

    def sources(
        self, operation: PairedOperation, others: Sequence[PairedOperation]
    ) -> list[PairedOperation]:
        """Return operations after which this one's answer is possible, latest first."""
        return [
            other
            for other in reversed(others)
            if other.index != operation.index
            and not precedes(operation, other)
            and self._can_explain(other, operation)
        ]

    def between(
        self, core: Sequence[PairedOperation], others: Sequence[PairedOperation]
    ) -> list[Relation]:
        """Return relations that follow from the answers of the contradicting operations.

        ``others`` are all operations that may explain an answer, those of the core included.
        """
        relations: list[Relation] = []
        for operation in core:
            if not self._answers(operation):
                continue
            sources = self.sources(operation, others)
            spoilers = self._spoilers(operation, core)
            possible = self._possible(operation, sources, spoilers)
            initial = self._legal(0, operation)
            overwritten = any(precedes(spoiler, operation) for spoiler in spoilers)
            candidates = possible or sources
            single = len(candidates) == 1 and (overwritten or not initial)
            kind = "reads-from" if single else "may-read-from"
            relations.extend(
                Relation(source.index, operation.index, kind, "" if possible else TOO_OLD)
                for source in candidates[:SOURCES_SHOWN_MAX]
            )
            if sources or initial:
                relations.extend(_too_late(operation, sources, spoilers))
            if single:
                relations.extend(_too_early(operation, candidates[0], spoilers))
        return relations

    def nearest_sources(
        self,
        operation: PairedOperation,
        sources: Sequence[PairedOperation],
        core: Sequence[PairedOperation],
    ) -> Sequence[PairedOperation]:
        """Return sources that the core has not overwritten, else the latest ones."""
        possible = self._possible(operation, sources, self._spoilers(operation, core))
        return possible[:SOURCES_SHOWN_MAX] or sources[:SOURCES_TOO_OLD_SHOWN_MAX]

    def _spoilers(
        self, operation: PairedOperation, core: Sequence[PairedOperation]
    ) -> list[PairedOperation]:
        """Return operations right after which the answer is impossible."""
        return [
            other
            for other in core
            if other.index != operation.index and self._spoil(other, operation)
        ]

    def _possible(
        self,
        operation: PairedOperation,
        sources: Sequence[PairedOperation],
        spoilers: Sequence[PairedOperation],
    ) -> list[PairedOperation]:
        before = [spoiler for spoiler in spoilers if precedes(spoiler, operation)]
        return [
            source for source in sources if not any(precedes(source, spoiler) for spoiler in before)
        ]

    def _answers(self, operation: PairedOperation) -> bool:
        answerless = operation.f in self._model.answerless_functions
        return operation.type == "ok" and not answerless

    def _states(self) -> range:
        return range(min(STATES_MAX, len(self._problem.transitions.states)))

    def _legal(self, state: int, operation: PairedOperation) -> bool:
        return self._after(state, self._number_by_index[operation.index]) != ILLEGAL

    def _can_explain(self, first: PairedOperation, second: PairedOperation) -> bool:
        """Return whether the first can change a state into one in which the second may happen."""
        calls = self._number_by_index[first.index], self._number_by_index[second.index]
        known = self._explains.get(calls)
        if known is None:
            known = not self._problem.pure[calls[0]] and any(
                self._after(state, calls[1]) == ILLEGAL
                and (after := self._after(state, calls[0])) != ILLEGAL
                and self._after(after, calls[1]) != ILLEGAL
                for state in self._states()
            )
            self._explains[calls] = known
        return known

    def _spoil(self, first: PairedOperation, second: PairedOperation) -> bool:
        """Return whether the second can never happen right after the first, in any state met."""
        calls = self._number_by_index[first.index], self._number_by_index[second.index]
        known = self._spoils.get(calls)
        if known is None:
            after = [
                following
                for state in self._states()
                if (following := self._after(state, calls[0])) != ILLEGAL
            ]
            known = bool(after) and all(self._after(state, calls[1]) == ILLEGAL for state in after)
            self._spoils[calls] = known
        return known


def _too_late(
    operation: PairedOperation,
    sources: Sequence[PairedOperation],
    spoilers: Sequence[PairedOperation],
) -> list[Relation]:
    """Order spoilers after the answer if they came after all its sources."""
    known = {source.index for source in sources}
    return [
        Relation(
            operation.index,
            spoiler.index,
            "must-precede",
            f"{_impossible(spoiler, operation)}, and {_led(len(sources))} was over before "
            f"[{spoiler.index}] began",
        )
        for spoiler in spoilers
        if spoiler.index not in known
        and not precedes(operation, spoiler)
        and all(precedes(source, spoiler) for source in sources)
    ]


def _too_early(
    operation: PairedOperation, source: PairedOperation, spoilers: Sequence[PairedOperation]
) -> list[Relation]:
    """Order spoilers before the only source if they came before the answer."""
    return [
        Relation(
            spoiler.index,
            source.index,
            "must-precede",
            f"{_impossible(spoiler, operation)}, and only [{source.index}] can lead to it",
        )
        for spoiler in spoilers
        if spoiler.index != source.index
        and precedes(spoiler, operation)
        and not precedes(spoiler, source)
        and not precedes(source, spoiler)
    ]


def _impossible(spoiler: PairedOperation, operation: PairedOperation) -> str:
    return f"right after [{spoiler.index}] the answer of [{operation.index}] is impossible"


def _led(count: int) -> str:
    if count == 0:
        return "the beginning, which alone leads to that answer,"
    if count == 1:
        return "the only operation that can lead to that answer"
    return f"each of the {count:,} operations that can lead to that answer"
