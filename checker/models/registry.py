"""Models by name, for the command line and for workloads.

Users' own are loaded elsewhere (``harness.judge.own_models``): this room reads no files.
"""

from collections.abc import Set as AbstractSet
from typing import Final

from splitbrain.checker.models.counter import Counter
from splitbrain.checker.models.element_set import ElementSet
from splitbrain.checker.models.locks import FencedRegister, Mutex
from splitbrain.checker.models.model import Model
from splitbrain.checker.models.queues import FifoQueue, UnorderedQueue
from splitbrain.checker.models.register import CasRegister, KeyValue, MultiRegister, Register
from splitbrain.checker.models.topics import Topics
from splitbrain.contracts.errors import UsageError

#: Every built-in model by its name.
MODELS: Final[dict[str, Model]] = {
    model.name: model
    for model in (
        Register(),
        CasRegister(),
        MultiRegister(),
        KeyValue(),
        Counter(),
        ElementSet(),
        FifoQueue(),
        UnorderedQueue(),
        Mutex(),
        FencedRegister(),
        Topics(),
    )
}


#: Users' models by the name that they are asked for: ``path/to/file.py:Name``.
_OWN: Final[dict[str, Model]] = {}


def add_own(name: str, model: Model) -> None:
    """Make a user's model known to this process."""
    _OWN[name] = model


def knows(name: str) -> bool:
    """Return whether there is a model of that name, built in or a user's."""
    return name in MODELS or name in _OWN


def models_with(functions: AbstractSet[str]) -> tuple[str, ...]:
    """Return the names of the built-in models that know all these kinds of operations."""
    return tuple(name for name, model in MODELS.items() if functions <= model.functions)


def model_named(name: str) -> Model:
    """Return the model of that name, built in or a user's.

    Raises:
        UsageError: there is none.
    """
    model = MODELS.get(name) or _OWN.get(name)
    if model is None:
        raise UsageError(
            f"there is no model called {name!r}", f"Choose one of: {', '.join(MODELS)}"
        )
    return model
