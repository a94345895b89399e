"""Which calls of a part are pure or overwrite, for models that do not say.

Where the calls of a part lead to few states, all of them are asked for: a call that leaves each as
it is, where it may happen, is pure; one that may happen in each and always leaves the same is an
overwrite. So a model of a few lines is searched like a built-in one. Must never guess: where there
are too many states the model's word is all there is.
"""

from collections.abc import Sequence
from typing import Final

from splitbrain.checker.linearizability.part.transitions import ILLEGAL, Transitions
from splitbrain.checker.models.model import Call, Model

#: Steps asked for at most: some milliseconds.
STEPS_MAX: Final = 4_000
#: States that the calls of a part may lead to.
STATES_MAX: Final = 64


def properties(
    model: Model, calls: Sequence[Call], transitions: Transitions
) -> tuple[list[bool], list[bool]]:
    """By call, whether it is pure, and whether it overwrites (no pure one does)."""
    pure = [model.is_pure(call) for call in calls]
    overwrite = [model.is_overwrite(call) for call in calls]
    declared = model.pure_functions or model.overwriting_functions or any(pure) or any(overwrite)
    rows = None if declared else _all_steps(transitions, len(calls))
    if rows is not None:
        for call, following in enumerate(zip(*rows, strict=True)):
            pure[call] = all(after in (ILLEGAL, state) for state, after in enumerate(following))
            overwrite[call] = ILLEGAL not in following and len(set(following)) == 1
    return pure, [one and not other for one, other in zip(overwrite, pure, strict=True)]


def _all_steps(transitions: Transitions, count: int) -> list[list[int]] | None:
    """By state, what each call leads to; None if that takes too many steps."""
    rows: list[list[int]] = []
    while len(rows) < len(transitions.states):
        if (len(rows) + 1) * count > STEPS_MAX:
            return None
        row: list[int] = []
        for call in range(count):
            row.append(transitions.step(len(rows), call))
            # States that grow cost more with each step; they do not close anyway.
            if len(transitions.states) > STATES_MAX:
                return None
        rows.append(row)
    return rows
