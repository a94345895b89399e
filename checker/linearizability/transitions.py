"""A model's steps as integers: states and calls are numbered as they are met."""

from collections.abc import Hashable, Sequence
from typing import Final

from checker.models.model import Call, Model

#: Transition of a call that may not happen in a state.
ILLEGAL: Final = -1


class Transitions:
    """The model's steps, asked once for each state and call, as integers."""

    def __init__(self, model: Model, calls: Sequence[Call]) -> None:
        self._model = model
        self._calls = calls
        self._number_by_state: dict[Hashable, int] = {model.initial: 0}
        #: States by number; number 0 is the initial one.
        self.states: list[Hashable] = [model.initial]
        #: State -> call -> state, or ILLEGAL; entries appear as they are asked for.
        self.rows: list[dict[int, int]] = [{}]

    def step(self, state: int, call: int) -> int:
        """Number of the state after the call, or ILLEGAL."""
        legal, following = self._model.step(self.states[state], self._calls[call])
        number = ILLEGAL
        if legal:
            number = self._number_by_state.get(following, ILLEGAL)
            if number == ILLEGAL:
                number = len(self.states)
                self._number_by_state[following] = number
                self.states.append(following)
                self.rows.append({})
        self.rows[state][call] = number
        return number
