"""Operations alike to a model, told apart by the codes of their columns.

A history of a million operations has few distinct ones where it has few values: the model is asked
about each once, by one operation that stands for all of them, whatever its process and time.
"""

from functools import cached_property
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from splitbrain.checker.linearizability.kernel.kernel_layout import Integers
from splitbrain.checker.linearizability.part.problem import Transitions, number_calls
from splitbrain.checker.models.model import Call, KeyedModel, Model, call_of
from splitbrain.contracts.distribution import PACKAGE
from splitbrain.history.columns import OK, UNKNOWN, OperationColumns

if TYPE_CHECKING:
    from splitbrain.checker.linearizability.kernel.compiled_search import CompiledModel

#: Hooks in which a user's model may look at anything in an operation; ours do not.
_HOOKS: Final = ("partition", "answer_of", "problem_with")
_OURS: Final = f"{PACKAGE}.checker.models."
#: Distinct combinations up to which a table is used instead of sorting.
_TABLE_MAX: Final = 1 << 22
_NUMBERS_MAX: Final = 1 << 62


class Distinct(NamedTuple):
    """Classes of operations that are alike."""

    #: Class of each operation.
    numbers: Integers
    #: One operation of each class.
    places: Integers


def reads_columns(model: Model) -> bool:
    """Return whether the model looks at kind, key, values and outcome of an operation alone."""
    return all(getattr(type(model), hook).__module__.startswith(_OURS) for hook in _HOOKS)


def is_split_by_key(model: Model) -> bool:
    """Return whether a part holds the operations on one key."""
    return isinstance(model, KeyedModel)


def distinct(columns: OperationColumns, *, with_keys: bool) -> Distinct | None:
    """Group operations alike in outcome, kind, argument and result, and in key if asked for.

    None if there are more combinations than can be counted.
    """
    known = columns.outcomes == OK
    fields = [
        columns.outcomes,
        columns.kinds,
        columns.arguments,
        np.where(known, columns.results, UNKNOWN),
    ]
    if with_keys:
        fields.append(columns.keys)
    packed = np.zeros(len(columns), dtype=np.int64)
    total = 1
    for field in fields:
        size = int(field.max(initial=0)) + 2
        total *= size
        if total >= _NUMBERS_MAX:
            return None
        packed = packed * size + (field.astype(np.int64) + 1)
    if total <= _TABLE_MAX:
        place = np.full(total, -1, dtype=np.int64)
        place[packed] = np.arange(len(packed))
        present = place >= 0
        return Distinct((np.cumsum(present) - 1)[packed], place[present])
    _, places, numbers = np.unique(packed, return_index=True, return_inverse=True)
    return Distinct(numbers.astype(np.int64), places)


class NumberedCalls:
    """Calls of a history without failed operations; made when the first part is searched."""

    def __init__(self, columns: OperationColumns, model: Model) -> None:
        self._columns = columns
        self._model = model

    @property
    def numbers(self) -> Integers:
        """Call number by operation."""
        return self._numbered[0]

    @property
    def calls(self) -> list[Call]:
        """Calls by number."""
        return self._numbered[1]

    @cached_property
    def transitions(self) -> Transitions:
        """Steps of the model by call number."""
        return Transitions(self._model, self.calls)

    @cached_property
    def compiled(self) -> "CompiledModel":
        """Steps of the model as arrays."""
        from splitbrain.checker.linearizability.kernel.compiled_search import CompiledModel

        return CompiledModel(self._model, self.calls, self.transitions)

    @cached_property
    def _numbered(self) -> tuple[Integers, list[Call]]:
        columns, model = self._columns, self._model
        alike = distinct(columns, with_keys=not is_split_by_key(model))
        if alike is None:
            places = np.arange(len(columns))
            alike = Distinct(places, places)
        # Different JSON may be one value to the model.
        table, calls = number_calls(
            (call_of(columns.operation(place), model) for place in alike.places.tolist()), model
        )
        return np.array(table, dtype=np.int64)[alike.numbers], calls
