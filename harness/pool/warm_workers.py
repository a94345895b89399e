"""Workers that begin before it is known what they are needed for, as copies of this process.

A history is read by some while others load what is compiled, so that neither waits. Those that were
not used end with the block.
"""

import importlib
import os
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from splitbrain.checker.linearizability.portfolio import COMPILED
from splitbrain.contracts.distribution import PACKAGE
from splitbrain.harness.pool.framed_child import FramedChild
from splitbrain.harness.pool.limits import JOBS_MAX, Limits
from splitbrain.harness.pool.workers import warm_worker

#: Size of a history from which every worker is wanted, and compiled searches pay off.
_LARGE_BYTES = 8 << 20
#: Size that takes about as long to read as what is compiled takes to load.
_HUGE_BYTES = 64 << 20
#: Size of a file from which it is read by several; sending what was read takes its time, too.
SHARED_FROM_BYTES = 16 << 20


class WarmWorkers(NamedTuple):
    """Begun workers to hand to ``harness.pool.workers.run_parts``, by their purpose."""

    reading: list[FramedChild]
    judging: list[FramedChild]


@contextmanager
def warm_workers(path: Path, limits: Limits) -> Generator[WarmWorkers]:
    """Workers for a history of this size."""
    size = _LARGE_BYTES if path.is_dir() else path.stat().st_size
    wanted = min(limits.jobs, processors()) if size >= _LARGE_BYTES else 1
    readers = wanted if wanted > 1 and size >= SHARED_FROM_BYTES and path.is_file() else 0
    # Not every history needs what is compiled: all load it only where one process is busy reading
    # for as long, and none where all processors are.
    loading = wanted if size >= _HUGE_BYTES else int(size >= _LARGE_BYTES)
    loading = 0 if readers else loading

    def started(count: int, first: Callable[[], None]) -> list[FramedChild]:
        children = (warm_worker(limits, first) for _ in range(count))
        return [child for child in children if child is not None]

    # Readers begin first. Of the judges those that load are taken first, for the largest parts.
    reading, judging = started(readers, _nothing), started(wanted - loading, _nothing)
    warm = WarmWorkers(reading, judging + started(loading, _load_compiled))
    try:
        yield warm
    finally:
        for child in (*warm.reading, *warm.judging):
            child.close()


def processors() -> int:
    """Processors that this process may use; not those of the whole machine, in a container."""
    affinity = getattr(os, "sched_getaffinity", None)
    count = len(affinity(0)) if affinity else os.cpu_count() or 1
    return min(count, JOBS_MAX)


def _load_compiled() -> None:
    """Importing numba takes a second, which the reading of a large history takes too."""
    if COMPILED:
        importlib.import_module(f"{PACKAGE}.checker.linearizability.kernel.compiled_search")


def _nothing() -> None:
    """Do nothing: the modules loaded already are enough."""
