"""Client libraries that are extras: who uses none of their systems need not have them."""

from importlib import import_module
from typing import Any

from splitbrain.contracts.errors import UsageError


def library(needed_by: str, package: str, extra: str, module: str | None = None) -> Any:
    """Return the module of an extra, which has the package's name unless another is given.

    Raises:
        UsageError: the package is not installed; ``needed_by`` begins the sentence.
    """
    name = module or package
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        if error.name != name:
            raise
        raise UsageError(
            f"{needed_by} needs the package {package}, which is not installed",
            f"pip install 'splitbrain[{extra}]' brings it",
        ) from error
