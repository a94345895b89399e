"""Loader of models that users wrote: ``--model path/to/file.py:Name``.

``Name`` is a class derived from ``checker.models.model.Model`` that can be made without arguments,
or an instance of one. The file runs in this process and in every worker that judges a part, so it
is as trusted as the command line that names it. Any fault of it becomes one sentence.
"""

from typing import Final

from splitbrain.checker.models.model import Model
from splitbrain.checker.models.registry import add_own, knows, require_complete
from splitbrain.contracts.errors import UsageError, in_one_line
from splitbrain.plugins.files import found_in_file, is_file

_HOW: Final = "`splitbrain docs models-and-checkers` shows a model of one's own"


def make_known(name: str) -> None:
    """Load the model of that name if it is a user's own; do nothing for the others.

    Raises:
        UsageError: the file cannot be run, or holds no such model.
    """
    if not is_file(name) or knows(name):
        return
    model = _model_of(found_in_file(name, "model", Model, _HOW), name)
    require_complete(model, name)
    add_own(name, model)


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
