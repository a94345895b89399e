"""Loader of models that users wrote: ``--model path/to/file.py:Name``.

``Name`` is a class derived from ``checker.models.model.Model`` that can be made without arguments,
or an instance of one. The file runs in this process and in every worker that judges a part, so it
is as trusted as the command line that names it. Any fault of it becomes one sentence.
"""

import contextlib
import importlib.util
import sys
from pathlib import Path

from splitbrain.checker.models.model import Model, NondeterministicModel
from splitbrain.checker.models.registry import add_own, knows
from splitbrain.contracts.errors import UsageError, in_one_line

_MARK = ".py:"
_HOW = "docs/models-and-checkers.md shows a model of one's own"


def make_known(name: str) -> None:
    """Load the model of that name if it is a user's own; do nothing for the others.

    Raises:
        UsageError: the file cannot be run, or holds no such model.
    """
    if _MARK not in name or knows(name):
        return
    path, _, attribute = name.rpartition(":")
    model = _model_of(_attribute_of(Path(path), attribute), name)
    _require_complete(model, name)
    add_own(name, model)


def _attribute_of(path: Path, attribute: str) -> object:
    if not path.is_file():
        raise UsageError(f"there is no file {path}", "Name a Python file that holds a model")
    spec = importlib.util.spec_from_file_location(f"own_model_{path.stem}", path)
    assert spec is not None, f"{path} has an ending that Python does not load"
    assert spec.loader is not None, f"{path} has no loader"
    module = importlib.util.module_from_spec(spec)
    # Dataclasses and the like look their own module up.
    sys.modules[spec.name] = module
    try:
        # Standard output is for the results alone.
        with contextlib.redirect_stdout(sys.stderr):
            spec.loader.exec_module(module)
    # Anything that a user's file raises, SystemExit included, is the file's fault.
    except (Exception, SystemExit) as error:
        raise UsageError(
            f"{path} cannot be run: {in_one_line(error)}", "Repair the file; it is Python"
        ) from error
    found = getattr(module, attribute, None) if attribute else None
    if found is None:
        raise UsageError(f"{path} holds no {attribute or 'nameless model'}", _named_models(module))
    return found


def _named_models(module: object) -> str:
    own = getattr(module, "__name__", "")
    names = [
        name
        for name, value in vars(module).items()
        if isinstance(value, type) and issubclass(value, Model) and value.__module__ == own
    ]
    return f"Its models are: {', '.join(names)}" if names else f"It holds no model at all; {_HOW}"


def _model_of(found: object, name: str) -> Model:
    if isinstance(found, type) and issubclass(found, Model):
        try:
            return found()
        except Exception as error:
            raise UsageError(
                f"the model {name!r} cannot be made without arguments: {in_one_line(error)}",
                "Give its __init__ defaults, or name an instance",
            ) from error
    if isinstance(found, Model):
        return found
    what = "another class" if isinstance(found, type) else f"of type {type(found).__name__}"
    raise UsageError(
        f"{name!r} is no model but {what}", f"Derive it from checker.models.model.Model; {_HOW}"
    )


def _require_complete(model: Model, name: str) -> None:
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
        raise UsageError(f"the model {name!r} lacks {lacking}", _HOW.capitalize())


def _hashes(value: object) -> bool:
    try:
        hash(value)
    except TypeError:
        return False
    return True
