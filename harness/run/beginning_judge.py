"""Judges the beginning of a history that still grows, in a process of its own.

Started as ``python -m splitbrain.harness.run.beginning_judge``; it is sent one ``Task`` and answers
with one sentence at the first violation, or ends with its parent. A history file is at any
moment a beginning of the truth, and what is asked here finds only what no later event can mend. An
operation without its end may or may not have happened, as in a finished history.
"""

import gc
import os
import pickle
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import msgspec

from splitbrain.checker.allowing import with_allowed
from splitbrain.checker.evidence import Evidence
from splitbrain.checker.linearizability.check import check_part
from splitbrain.checker.linearizability.part.parts import Part, combine, split
from splitbrain.checker.linearizability.part_source import ObjectSource
from splitbrain.checker.linearizability.portfolio import Portfolio
from splitbrain.checker.models.model import KeyedModel
from splitbrain.checker.models.registry import model_named
from splitbrain.checker.names import linearizability_model, transactions_level
from splitbrain.checker.registry import checker_named
from splitbrain.checker.transactions.levels import PHANTOM_VALUE
from splitbrain.checker.verdict import Verdict
from splitbrain.harness.folder.own_models import make_known
from splitbrain.harness.pool.frames import take_over_pipes, write_frame
from splitbrain.harness.pool.worker_process import bodies_from
from splitbrain.harness.run.beginning import Beginning
from splitbrain.history.identity import operations_apart
from splitbrain.history.process_budget import ProcessBudget
from splitbrain.history.records import Event, PairedOperation

#: Shortest time between two looks.
_INTERVAL_S: Final = 0.1
_READ_BYTES: Final = 4 << 20
#: The clients share the machine.
_NICENESS: Final = 5


class Task(msgspec.Struct, frozen=True):
    """A history to be followed, and who judges it."""

    history: Path
    #: Names of checkers, each of which ``checker.names.is_for_good``.
    checkers: tuple[str, ...]
    #: Of the run: all but the operations.
    evidence: Evidence
    #: Of each judgement of each checker, or of each part of it.
    time_budget_s: float
    memory_budget_mib: int


class _GrowingHistory:
    def __init__(self, path: Path) -> None:
        self._path, self._position, self._partial = path, 0, b""
        self._decoder = msgspec.json.Decoder(Event)

    def new_events(self) -> list[Event]:
        """Read the whole lines that have arrived."""
        events: list[Event] = []
        with self._path.open("rb") as file:
            file.seek(self._position)
            while data := file.read(_READ_BYTES):
                self._position += len(data)
                whole, _, self._partial = (self._partial + data).rpartition(b"\n")
                events += map(self._decoder.decode, whole.splitlines())
        return events


class BeginningJudge:
    """Judgements of longer and longer beginnings of one history."""

    def __init__(self, task: Task) -> None:
        """Raise UsageError where one of the checkers cannot be had."""
        self._task = task
        self._beginning = Beginning()
        #: Operations and completed ones of each part when it was last judged.
        self._sizes: dict[tuple[str, str | None], tuple[int, int]] = {}
        for name in task.checkers:
            model = linearizability_model(name)
            if model is not None:
                make_known(model)
            checker_named(name)

    def violation(self, events: Sequence[Event]) -> str | None:
        """Judge the history up to its next events, at least one; return a sentence if it is wrong.

        Raises:
            PairingError: the events break the rules of a history.
        """
        self._beginning.take(events)
        for name in self._task.checkers:
            model = linearizability_model(name)
            reason = self._anomaly(name) if model is None else self._unordered(name, model)
            if reason is not None:
                return f"{name}: {reason}"
        return None

    def _anomaly(self, name: str) -> str | None:
        is_of_keys = transactions_level(name) is not None
        operations = tuple(self._operations(lately=is_of_keys))
        evidence = msgspec.structs.replace(self._task.evidence, operations=operations)
        result = checker_named(name)(evidence, self._budget())
        # Without a promise of real time a value may be read before anybody is asked to write it.
        told = (found for found in result.violations if found["kind"] != PHANTOM_VALUE)
        return next((f"{found['kind']}: {found['sentence']}" for found in told), None)

    def _unordered(self, name: str, model: str) -> str | None:
        is_of_keys = isinstance(model_named(model), KeyedModel)
        for part in split(self._operations(lately=is_of_keys), model_named(model)):
            if not self._has_changed(name, part):
                continue
            decision = Portfolio(ObjectSource(part, model_named(model)), self._budget()).decide()
            # Why not is told when the run is over: finding it takes longer than freezing may.
            if decision.outcome.verdict is Verdict.INVALID and self._counts(part, model):
                return f"the operations on {part.key or 'the object'} have no order."
        return None

    def _operations(self, *, lately: bool) -> Sequence[PairedOperation]:
        """Return all operations, or those on objects touched lately, with values told apart."""
        beginning = self._beginning
        operations = beginning.lately if lately else beginning.operations
        # To look through all values again would take a third of the time.
        return operations_apart(operations)[0] if beginning.may_be_one else operations

    def _counts(self, part: Part, model: str) -> bool:
        """Return whether a part's violation is none that the system documents."""
        allowed = self._task.evidence.allowed
        if not allowed:
            return True
        result = with_allowed(combine([check_part(part, model, self._budget())], model), allowed)
        return result.verdict is Verdict.INVALID

    def _has_changed(self, name: str, part: Part) -> bool:
        """Return whether the part has grown since it was last judged, so that it is judged anew."""
        ended = sum(operation.end is not None for operation in part.operations)
        size = len(part.operations), ended
        changed = self._sizes.get((name, part.key)) != size
        self._sizes[name, part.key] = size
        return changed

    def _budget(self) -> ProcessBudget:
        return ProcessBudget(self._task.time_budget_s, self._task.memory_budget_mib)


def main() -> None:
    """Judge until a violation is found, or the parent is gone."""
    incoming, outgoing = take_over_pipes()
    bodies = bodies_from(incoming)
    os.nice(_NICENESS)
    # Events stay, and hold no cycles: looking for some would take a third of the time.
    gc.disable()
    task: Task = pickle.loads(bodies.get())  # noqa: S301 - from our own parent
    judge, history = BeginningJudge(task), _GrowingHistory(task.history)
    never = threading.Event()
    while True:
        never.wait(_INTERVAL_S)
        events = history.new_events()
        sentence = judge.violation(events) if events else None
        if sentence is not None:
            write_frame(outgoing, sentence)
            return


if __name__ == "__main__":
    main()
