"""How many worker processes a load needs, and which slots each of them performs."""

import itertools
import math
import os

from splitbrain.harness.run.clients import Load

#: Operations a second that one process is trusted with. A null client reaches many times this; a
#: client that really talks costs some tens of microseconds, and the nemesis wants its share.
RATE_PER_PROCESS_MAX = 5_000


def workers_for(load: Load) -> int:
    """Number of worker processes; 0: the run's own process does it all."""
    if load.workers is not None:
        return min(load.workers, load.concurrency)
    if load.rate <= RATE_PER_PROCESS_MAX:
        return 0
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    wanted = math.inf if math.isinf(load.rate) else math.ceil(load.rate / RATE_PER_PROCESS_MAX)
    workers = min(wanted, cores or 1, load.concurrency)
    return int(workers) if workers > 1 else 0


def shares(slots: int, workers: int) -> list[tuple[int, ...]]:
    """The slots of each worker process: neighbours, so that each has both kinds of routes."""
    bounds = [slots * number // workers for number in range(workers + 1)]
    return [tuple(range(first, end)) for first, end in itertools.pairwise(bounds) if end > first]
