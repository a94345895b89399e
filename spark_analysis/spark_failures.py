"""Says what Spark says in one sentence instead of two screens of stack."""

import contextlib
from collections.abc import Iterator

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from splitbrain.contracts.errors import HarnessError


@contextlib.contextmanager
def one_sentence(action: str, target: str, next_step: str) -> Iterator[None]:
    """Turn whatever Spark or a disk raises inside into one error of the harness.

    Raises:
        HarnessError: that.
    """
    try:
        yield
    except (PySparkException, Py4JError, OSError) as error:
        first_line = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise HarnessError(action, target, first_line.rstrip("."), next_step) from error
