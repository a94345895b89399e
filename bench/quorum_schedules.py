"""How many random schedules of the core one process checks in a minute, and how bugs fare in them.

Run as ``python -m bench.quorum_schedules [SEEDS]``: a table for people, then one JSON object. It
asserts nothing; ``tests/simulation`` does.
"""

import json
import sys
import time

from nodes.quorum.bugs import NO_BUGS, PlantedBugs
from tests.simulation.schedule import run_seed

#: The bugs that the simulated world can show; the others belong to the server.
BUGS = (
    "vote-not-persisted",
    "ack-before-fsync",
    "prior-epoch-commit",
    "truncate-below-high-watermark",
    "stale-leader-reads",
)


def sweep(seed_count: int, bugs: PlantedBugs) -> dict[str, float | int | None]:
    """Runs seeds 0 to ``seed_count``; CPU seconds of this process, not of the wall."""
    began = time.process_time()
    alarms: list[int] = []
    event_count = 0
    for seed in range(seed_count):
        outcome = run_seed(seed, bugs)
        event_count += outcome.event_count
        if outcome.violated is not None:
            alarms.append(seed)
    elapsed = time.process_time() - began
    return {
        "seeds": seed_count,
        "alarms": len(alarms),
        "first_seed": alarms[0] if alarms else None,
        "seeds_per_cpu_minute": round(seed_count * 60 / elapsed),
        "events_per_cpu_second": round(event_count / elapsed),
    }


def main() -> None:
    """Prints the table and the JSON line."""
    seed_count = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    results = {"correct": sweep(seed_count, NO_BUGS)}
    for name in BUGS:
        results[name] = sweep(seed_count, PlantedBugs.from_names([name]))
    columns = ("seeds", "alarms", "first_seed", "seeds_per_cpu_minute", "events_per_cpu_second")
    print(f"{'core':32}" + "".join(f"{column:>24}" for column in columns))
    for name, row in results.items():
        print(f"{name:32}" + "".join(f"{row[column]!s:>24}" for column in columns))
    print(json.dumps(results))


if __name__ == "__main__":
    main()
