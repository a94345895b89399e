"""The trace hashes of simulated seeds, to be compared: between interpreters, machines, versions.

``python -m bench.trace_hashes --seeds 0:20 [--after 1000:1100] [--bug NAME] [--recording]`` draws
each seed's world as ``splitbrain sim`` does, runs it in this process, and prints ``seed hash`` a
line; the last line is one JSON object with the interpreter and a digest of all evidence of all
seeds. ``--after`` runs other seeds first, in the same process: they must change nothing, and nor
must recording.

Runs where only msgspec, crc32c and tenacity are installed, with the project's folder as the current
one; must never import more than simulated worlds need. Source: issue 5, item 2.
"""

import argparse
import hashlib
import json
import os
import platform
import sys

import msgspec

from contracts.scenario import Scenario
from harness.simulation.outcome import SimulationOutcome
from harness.simulation.simulate import simulate
from harness.simulation.swarm import draw_scenario
from systems.kraft.simulation.system import KraftSimulation


def scenario_of(seed: int, bugs: tuple[str, ...]) -> Scenario:
    """The world that a sweep would draw for this seed."""
    system = KraftSimulation()
    return draw_scenario(
        seed, system="kraft", bugs=bugs, happenings=system.happenings, hints=system
    )


def run(seed: int, bugs: tuple[str, ...], *, is_recording: bool = False) -> SimulationOutcome:
    """One seed's run."""
    return simulate(scenario_of(seed, bugs), KraftSimulation(), is_recording=is_recording)


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


def main(arguments: list[str] | None = None) -> int:
    """Print the hashes."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seeds", type=seeds_of, default=range(20), help="half-open, as in 0:20")
    parser.add_argument("--after", type=seeds_of, default=range(0), help="run these seeds first")
    parser.add_argument("--bug", action="append", default=[], help="plant this bug")
    parser.add_argument("--recording", action="store_true", help="keep the story of each run")
    options = parser.parse_args(arguments)
    bugs = tuple(options.bug)
    for seed in options.after:
        run(seed, bugs)
    whole = hashlib.blake2b(digest_size=16)
    for seed in options.seeds:
        outcome = run(seed, bugs, is_recording=options.recording)
        whole.update(evidence(outcome))
        print(seed, outcome.trace_hash, flush=True)
    facts = {
        "python": platform.python_version(),
        "hash_seed": os.environ.get("PYTHONHASHSEED", "random"),
        "seeds": f"{options.seeds.start}:{options.seeds.stop}",
        "after": len(options.after),
        "evidence": whole.hexdigest(),
    }
    print(json.dumps(facts))
    return 0


if __name__ == "__main__":
    sys.exit(main())
