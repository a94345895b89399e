"""Judges a file by the command line's function, with its workers' work done in this process.

A part still goes through the bytes that a worker is sent, for those are part of what is judged.
Thresholds are set so that small files go each way of large ones.
"""

import pickle
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from enum import Enum
from pathlib import Path
from unittest.mock import patch

from bench.reader_fuzz.drawn import DrawnFile
from splitbrain.harness.folder.results import Results
from splitbrain.harness.judge.bare_history import judge_history
from splitbrain.harness.pool import workers
from splitbrain.harness.pool.limits import Limits
from splitbrain.harness.pool.worker_process import resolve

_NEVER_BYTES = 1 << 60
_MODULES_WITH_BLOCKS = (
    "splitbrain.history.reader",
    "splitbrain.history.line_columns",
    "splitbrain.history.edn_columns",
)


class Way(Enum):
    """A way of a file to its verdict."""

    OBJECTS = "objects"
    COLUMNS = "columns"
    #: Columns of several ranges of one file, joined.
    RANGES = "ranges"


class _Patience:
    """A budget that never ends: what is judged here is tiny."""

    def exhausted(self) -> str | None:
        return None


@contextmanager
def in_blocks(file: DrawnFile) -> Generator[None]:
    """Readers take so many bytes at a time as the file says."""
    if file.block_bytes == 1 << 20:
        yield
        return
    first, second, third = (
        patch(f"{module}._BLOCK_BYTES", file.block_bytes) for module in _MODULES_WITH_BLOCKS
    )
    with first, second, third:
        yield


def judged(path: Path, file: DrawnFile, way: Way) -> Results:
    """Return the results of ``splitbrain check``.

    Raises:
        HarnessError: the history is refused.
    """
    from_bytes = _NEVER_BYTES if way is Way.OBJECTS else 0
    shared_bytes = 0 if way is Way.RANGES else _NEVER_BYTES
    with (
        patch("splitbrain.harness.pool.workers.run_parts", _run_parts),
        patch("splitbrain.harness.judge.bare_judging.COLUMNS_FROM_BYTES", from_bytes),
        patch("splitbrain.harness.judge.bare_columns.SHARED_FROM_BYTES", shared_bytes),
        in_blocks(file),
    ):
        return judge_history(
            path,
            file.model,
            file.format if file.named else None,
            Limits(600, 4096, 3),
            skip_broken=file.skip_broken,
        )


def _run_parts(
    parts: Sequence[workers.Part], *_: object, **_named: object
) -> list[workers.PartOutcome]:
    return [_outcome(part) for part in parts]


def _outcome(part: workers.Part) -> workers.PartOutcome:
    try:
        payload = pickle.loads(pickle.dumps(part.payload))  # noqa: S301 - from this process
        value, failure = resolve(part.function)(payload, _Patience()), None
    # As in a worker: any exception of a checker becomes a value.
    except Exception as error:  # noqa: BLE001
        value, failure = None, f"crashed: {type(error).__name__}: {error}"
    return workers.PartOutcome(value, failure, 0.0, 0.0)
