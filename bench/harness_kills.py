"""Kills the harness at random moments of real runs, cleans, and looks for what is left behind.

``python -m bench.harness_kills --kills 20 --seed 1 [--runtime docker] [--nemesis KINDS]
[--strict] [--parallel-living]``: each round starts ``splitbrain test`` as a process of its own and
ends it by SIGKILL at a random moment, every other time amid a fault (alone, with its process group,
or with its watchdog as well). The faults are the next ones of the next family, so that every kind
comes by in turn, unless ``--nemesis`` names some. It measures how long the watchdog takes to heal
and stop the nodes, runs ``splitbrain clean`` and compares the machine with what it was
(``bench.host_snapshot``). The dead folder must still be judged. Foreign things of the program's own
stand by and must not be touched; with ``--parallel-living`` a second run goes on meanwhile and must
end valid. ``--strict`` wants a quiet machine. Prints a table, and one JSON object on the last line;
exits with 1 on anything left behind, disturbed or crashed.
"""

import argparse
import json
import random
import shutil
import statistics
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import msgspec

from bench import kill_moments
from bench.killed_runs import MANNERS, Campaign, Kill, Round
from splitbrain.nemesis.families import bad_links, clocks, disks, partitions, processes
from splitbrain.runtimes.docker.engine import connect

#: A harness may end before its moment comes; one that always does is broken.
_ROUNDS_PER_KILL_MAX = 3
FAMILIES = tuple(each.KINDS for each in (partitions, disks, bad_links, processes, clocks))
_KINDS_EACH = 2
_NODES = 3


def _tell(result: Round) -> None:
    watchdog = "-" if result.watchdog_s is None else f"{result.watchdog_s:.2f} s"
    print(
        f"{result.number:4d}  {result.kill.moment!s:24s}  {result.kill.nemesis:30s}  "
        f"{result.kill.manner:18s}  watchdog {watchdog:8s}  clean {result.clean_s:5.2f} s  "
        f"check {'-' if result.check is None else result.check}  "
        f"left {len(result.left_behind)}  disturbed {len(result.disturbed)}",
        flush=True,
    )
    if result.ended is not None:
        print(f"      not killed, it had ended: {result.ended}", flush=True)
    for line in [*result.left_behind, *result.disturbed, *result.problems]:
        print(f"      {line}", flush=True)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="bench.harness_kills", description=__doc__)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--runtime", default="docker")
    parser.add_argument("--nemesis", default=None, help="of every round; by default all in turn")
    parser.add_argument("--strict", action="store_true")
    parser.add_argument("--parallel-living", action="store_true")
    return parser.parse_args()


def faults_of(seed: int, number: int) -> str:
    """Faults of round ``number``, from 1: some of one family, the next ones each time it comes."""
    turn, place = divmod(number - 1, len(FAMILIES))
    kinds = [
        kind.name for kind in FAMILIES[place] if kind.nodes_min <= _NODES and kind.rule != "lies"
    ]
    random.Random(f"{seed}/{place}").shuffle(kinds)
    first = turn * _KINDS_EACH
    return ",".join(kinds[(first + step) % len(kinds)] for step in range(_KINDS_EACH))


def draw(options: argparse.Namespace, number: int) -> Kill:
    """Return the kill of the given number in the campaign of the given seed."""
    draws = random.Random(f"{options.seed}/{number}")
    steps = kill_moments.AMID_FAULTS if number % 2 else tuple(kill_moments.STEPS)
    return Kill(
        moment=kill_moments.draw(draws, steps),
        manner=draws.choice(MANNERS),
        seed=draws.randrange(1_000_000),
        time_limit_s=draws.uniform(8.0, 12.0),
        nemesis=options.nemesis or faults_of(options.seed, number),
        runtime=options.runtime,
    )


def campaign(options: argparse.Namespace, tell: Callable[[Round], None] = _tell) -> list[Round]:
    """Kill until enough harnesses were killed; every round, killed or not."""
    rounds: list[Round] = []
    work = Path(tempfile.mkdtemp(prefix="harness-kills-"))
    client = connect()
    running = Campaign(work, client, strict=options.strict, parallel_living=options.parallel_living)
    try:
        with running.foreign:
            while sum(done.killed for done in rounds) < options.kills:
                if len(rounds) == _ROUNDS_PER_KILL_MAX * options.kills:
                    break
                number = len(rounds) + 1
                rounds.append(running.round(number, draw(options, number)))
                tell(rounds[-1])
    finally:
        client.close()
        if all(done.is_whole for done in rounds):
            shutil.rmtree(work, ignore_errors=True)
        else:
            print(f"the run folders are kept below {work}")
    return rounds


def main() -> int:
    """Parse, kill, print; returns the exit code."""
    options = _options()
    rounds = campaign(options)
    killed = [done for done in rounds if done.killed]
    seconds = sorted(done.watchdog_s for done in rounds if done.watchdog_s is not None)
    whole = sum(done.is_whole for done in rounds)
    figures = {
        "kills": len(killed),
        "rounds": len(rounds),
        "whole": whole,
        "left_behind": sum(len(done.left_behind) for done in rounds),
        "disturbed": sum(len(done.disturbed) for done in rounds),
        "watchdog_s_median": statistics.median(seconds) if seconds else None,
        "watchdog_s_max": seconds[-1] if seconds else None,
        "strict": bool(options.strict),
        "runtime": options.runtime,
        "results": msgspec.to_builtins(rounds),
    }
    print(f"{len(killed)} kills in {len(rounds)} rounds; {whole} rounds left the machine as it was")
    print(json.dumps(figures))
    return 0 if whole == len(rounds) and len(killed) == options.kills else 1


if __name__ == "__main__":
    sys.exit(main())
