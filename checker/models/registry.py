"""Models by name, for the command line and for workloads: ours, packages', those of files.

A package offers a model as an entry point of the group ``splitbrain.models``. Those of files are
loaded elsewhere (``harness.folder.own_models``), for they are never run unasked.
"""

from collections.abc import Set as AbstractSet
from typing import Final

from splitbrain.checker.models.counter import Counter
from splitbrain.checker.models.element_set import ElementSet
from splitbrain.checker.models.locks import FencedRegister, Mutex
from splitbrain.checker.models.model import Model, NondeterministicModel
from splitbrain.checker.models.queues import FifoQueue, PriorityQueue, Stack, UnorderedQueue
from splitbrain.checker.models.register import CasRegister, KeyValue, MultiRegister, Register
from splitbrain.checker.models.topics import Topics
from splitbrain.contracts.errors import UsageError
from splitbrain.plugins.offers import Offers

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
        Stack(),
        PriorityQueue(),
        Mutex(),
        FencedRegister(),
        Topics(),
    )
}


#: Models of installed packages.
OFFERS: Final = Offers[Model]("model", "splitbrain.models", Model, MODELS)
#: Users' models by the name that they are asked for: ``path/to/file.py:Name``.
_OWN: Final[dict[str, Model]] = {}


def add_own(name: str, model: Model) -> None:
    """Make a user's model known to this process."""
    _OWN[name] = model


def knows(name: str) -> bool:
    """Return whether there is a model of that name, built in or a user's."""
    return name in MODELS or name in _OWN or name in OFFERS.names()


def model_names() -> tuple[str, ...]:
    """Return the names of ours, then of packages' models."""
    return (*MODELS, *sorted(OFFERS.names()))


def models_with(functions: AbstractSet[str]) -> tuple[str, ...]:
    """Return the names of the built-in models that know all these kinds of operations."""
    return tuple(name for name, model in MODELS.items() if functions <= model.functions)


def model_named(name: str) -> Model:
    """Return the model of that name, built in or a user's.

    Raises:
        UsageError: there is none, or that of a package cannot be used.
    """
    model = MODELS.get(name) or _OWN.get(name)
    if model is None and (model := OFFERS.offered(name)) is not None:
        require_complete(model, name)
        # Asked for with each state of a search.
        _OWN[name] = model
    if model is None:
        raise UsageError(
            f"there is no model called {name!r}", f"Choose one of: {', '.join(model_names())}"
        )
    return model


def require_complete(model: Model, name: str) -> None:
    """Refuse a model that lacks what every model must have.

    Raises:
        UsageError: says what.
    """
    nondeterministic = isinstance(model, NondeterministicModel)
    step = NondeterministicModel.steps if nondeterministic else Model.step
    lacking: str | None = None
    if not model.functions:
        lacking = "functions, the kinds of operations that it knows"
    elif getattr(type(model), step.__name__) is step:
        lacking = f"{step.__name__}, what an operation does"
    elif not _hashes(model.initial):
        lacking = "a hashable initial state, such as a tuple or a frozenset"
    elif nondeterministic and not isinstance(model.initial, frozenset):
        lacking = "a frozenset of states as its initial one"
    if lacking is not None:
        raise UsageError(
            f"the model {name!r} lacks {lacking}",
            "Docs/models-and-checkers.md shows a model of one's own",
        )


def _hashes(value: object) -> bool:
    try:
        hash(value)
    except TypeError:
        return False
    return True
