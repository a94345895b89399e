"""The trace hashes of simulated worlds, to be compared: between interpreters, machines, versions.

``python -m bench.trace_hashes --seeds 0:20 [--state-machine metadata] [--after 1000:1100]
[--bug NAME] [--recording]`` draws each seed's world as ``splitbrain sim`` does, runs it in this
process, and prints ``seed hash projection`` a line; the last line is one JSON object with the
interpreter and a digest of all evidence of all seeds. ``--after`` runs other seeds first, in the
same process: they must change nothing, and nor must recording.

``--guard [--only PREFIX] [--jobs J] [--against FILE]`` runs the worlds of ``bench.trace_worlds``
instead, and prints ``name hash projection`` a line. With ``--against`` it compares them with such
lines of another version, such as ``bench/baselines/worlds.txt``, names the worlds that differ, and
ends with 1 if there are any: after a commit that moves code hash and projection are equal, after
one that renames the projection is.

Without ``--guard`` it runs where only msgspec and crc32c are installed, with the
project's folder as the current one; must never import more than simulated worlds need. Source:
issue 5, item 2; issue 19.
"""

import argparse
import hashlib
import json
import os
import platform
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from bench.trace_projection import projection
from bench.trace_worlds import REGISTERS, STATE_MACHINES, guard_worlds, swarm_world
from splitbrain.contracts.scenario import Scenario
from splitbrain.harness.folder.simulation_outcome import SimulationOutcome
from splitbrain.harness.run.world.simulate import simulate
from splitbrain.simulation.kraft.system import KraftSimulation

if TYPE_CHECKING:
    from concurrent.futures import Executor

#: Hash and projection of a world.
Digests = tuple[str, str]


def run(scenario: Scenario, *, is_recording: bool = False) -> SimulationOutcome:
    """One world's run."""
    return simulate(scenario, KraftSimulation(), is_recording=is_recording)


def evidence(outcome: SimulationOutcome) -> bytes:
    """All that the run leaves, but for the story, which only recorded runs have."""
    return msgspec.json.encode(msgspec.structs.replace(outcome, story=()))


def seeds_of(text: str) -> range:
    """``A:B`` as a half-open range.

    Raises:
        argparse.ArgumentTypeError: it is none.
    """
    first, colon, end = text.partition(":")
    if not (colon and first.isdigit() and end.isdigit() and int(first) < int(end)):
        raise argparse.ArgumentTypeError(f"{text!r} is no range of seeds; write 0:20 for 0 to 19")
    return range(int(first), int(end))


def read_baseline(path: Path) -> dict[str, Digests]:
    """World to digests, as ``--guard`` printed them.

    Raises:
        argparse.ArgumentTypeError: the file cannot be read, or a line is none of these.
    """
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise argparse.ArgumentTypeError(f"{path} cannot be read: {error}") from None
    baseline: dict[str, Digests] = {}
    for number, line in enumerate(lines, 1):
        words = line.split()
        if len(words) != len(("name", "hash", "projection")):
            raise argparse.ArgumentTypeError(f"{path}:{number} is not `name hash projection`")
        baseline[words[0]] = (words[1], words[2])
    return baseline


def differences(before: dict[str, Digests], after: dict[str, Digests]) -> Iterator[tuple[str, str]]:
    """Worlds that differ, each with how."""
    for name in sorted({*before, *after}):
        if name not in before:
            yield name, "is new"
        elif name not in after:
            yield name, "is missing"
        elif before[name][1] != after[name][1]:
            yield name, "has another projection"
        elif before[name][0] != after[name][0]:
            yield name, "has another hash, and the same projection"


def main(arguments: list[str] | None = None) -> int:
    """Print the hashes."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seeds", type=seeds_of, default=range(20), help="half-open, as in 0:20")
    parser.add_argument("--state-machine", choices=STATE_MACHINES, default=REGISTERS)
    parser.add_argument("--after", type=seeds_of, default=range(0), help="run these seeds first")
    parser.add_argument("--bug", action="append", default=[], help="plant this bug")
    parser.add_argument("--recording", action="store_true", help="keep the story of each run")
    parser.add_argument("--guard", action="store_true", help="run the worlds that guard a change")
    parser.add_argument("--only", default="", help="those of them whose names begin so")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="of the guard")
    parser.add_argument("--against", type=Path, help="compare with the guard's lines in this file")
    options = parser.parse_args(arguments)
    if not options.guard:
        return _print_seeds(options)
    try:
        before = {} if options.against is None else read_baseline(options.against)
    except argparse.ArgumentTypeError as error:
        parser.error(str(error))
    names = [name for name, _ in guard_worlds() if name.startswith(options.only)]
    if not names:
        parser.error(f"--only {options.only}: no world's name begins so; it is one beginning")
    after = dict(_guarded(options.only, options.jobs))
    if options.against is None:
        return 0
    return _compare(
        {name: of for name, of in before.items() if name.startswith(options.only)}, after
    )


def _print_seeds(options: argparse.Namespace) -> int:
    bugs, machine = tuple(options.bug), options.state_machine
    for seed in options.after:
        run(swarm_world(seed, bugs, machine))
    whole = hashlib.blake2b(digest_size=16)
    for seed in options.seeds:
        outcome = run(swarm_world(seed, bugs, machine), is_recording=options.recording)
        whole.update(evidence(outcome))
        print(seed, outcome.trace_hash, projection(outcome), flush=True)
    facts = {
        "python": platform.python_version(),
        "hash_seed": os.environ.get("PYTHONHASHSEED", "random"),
        "seeds": f"{options.seeds.start}:{options.seeds.stop}",
        "after": len(options.after),
        "evidence": whole.hexdigest(),
    }
    print(json.dumps(facts))
    return 0


def _guarded(prefix: str, jobs: int) -> Iterator[tuple[str, Digests]]:
    """Run the worlds of the guard, and print each when it and those before it are over."""
    worlds = [(name, make()) for name, make in guard_worlds() if name.startswith(prefix)]
    with _pool(jobs) as pool:
        scenarios = (scenario for _, scenario in worlds)
        for (name, _), digests in zip(worlds, pool.map(_digests, scenarios), strict=True):
            print(name, *digests, flush=True)
            yield name, digests


def _pool(jobs: int) -> "Executor":
    """Worker processes; imported here, since who compares interpreters imports little."""
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing import get_context

    return ProcessPoolExecutor(jobs, mp_context=get_context("spawn"))


def _digests(scenario: Scenario) -> Digests:
    outcome = run(scenario)
    return outcome.trace_hash, projection(outcome)


def _compare(before: dict[str, Digests], after: dict[str, Digests]) -> int:
    found = list(differences(before, after))
    for name, how in found:
        print(f"{name} {how}", file=sys.stderr)
    counted = Counter(how for _, how in found)
    equal = len(after) - len(found) + counted["is missing"]
    summary = [f"{equal:,} of {len(before):,} worlds are equal"]
    summary += [f"{count:,} {how}" for how, count in sorted(counted.items())]
    print("; ".join(summary), file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
