"""A model's steps as integers: states and calls are numbered as they are met."""

from collections.abc import Hashable, Sequence
from typing import Final

from splitbrain.checker.models.model import Call, Model, apart_from_truths

#: Transition of a call that may not happen in a state.
ILLEGAL: Final = -1


class Transitions:
    """The model's steps, asked once for each state and call, as integers."""

    def __init__(self, model: Model, calls: Sequence[Call]) -> None:
        self._model = model
        self._calls = calls
        initial = apart_from_truths(model.initial, calls)
        self._is_apart = initial is not model.initial
        self._number_by_state: dict[Hashable, int] = {initial: 0}
        #: States by number; number 0 is the initial one.
        self.states: list[Hashable] = [initial]
        #: State -> call -> state, or ILLEGAL; entries appear as they are asked for.
        self.rows: list[dict[int, int]] = [{}]

    def step(self, state: int, call: int) -> int:
        """Number of the state after the call, or ILLEGAL."""
        legal, following = self._model.step(self.states[state], self._calls[call])
        number = ILLEGAL
        if legal:
            if self._is_apart:
                following = apart_from_truths(following, self._calls)
            number = self._number_by_state.get(following, ILLEGAL)
            if number == ILLEGAL:
                number = len(self.states)
                self._number_by_state[following] = number
                self.states.append(following)
                self.rows.append({})
        self.rows[state][call] = number
        return number
