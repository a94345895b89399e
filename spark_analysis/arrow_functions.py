"""Plans Python functions over Arrow tables, which Spark makes in one place with those of pandas."""

import contextlib
import warnings
from collections.abc import Iterator


@contextlib.contextmanager
def arrow_functions() -> Iterator[None]:
    """Around ``mapInArrow`` and ``applyInArrow``.

    Spark warns of the version of pandas there, which such a function never meets.
    """
    with warnings.catch_warnings():
        warnings.filterwarnings(
            "ignore", "PySpark does not yet fully support pandas", FutureWarning
        )
        yield
