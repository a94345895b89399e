"""Cost of simulated time: processor time, steps, seeds; and the share of the watching.

Run as ``python -m bench.simulation [--seeds 20] [--repeats 5] [--smoke]``. Two sorts of worlds:

- fixed ones (``bench.simulation_worlds``), 30 simulated seconds of load and faults and about two of
  recovery, with the checkers of outcomes: at three rates; with Kafka's metadata; with one part of
  the watching left out (the ghost state is kept up without invariants too, and what would be hashed
  is still encoded); for growing time and growing numbers of clients. The figure is milliseconds of
  processor time for 30 simulated seconds. The worlds take turns, so that what else the machine does
  hits all alike;
- the worlds that a sweep draws, of registers and of metadata, each seed once, drawing included.

Seconds are of this machine and of ``time.process_time``; steps, operations and traces are the same
everywhere. Beside another checkout: ``bench.simulation_pairs``. How soon planted bugs are found,
also per hour of processor time: ``bench.planted``. The last line is one JSON object.
"""

import argparse
import gc
import json
import platform
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from typing import Final

import msgspec

from bench.simulation_worlds import WORLD_SEED, UnhashedSimulation, fixed_world
from bench.trace_worlds import STATE_MACHINES
from splitbrain.checker.verdict import Verdict
from splitbrain.contracts.names import DEFAULT_SYSTEM
from splitbrain.contracts.scenario import Scenario
from splitbrain.contracts.simulation import SimulatedSystem
from splitbrain.harness.campaign.sweep.options import SimOptions
from splitbrain.harness.campaign.sweep.trial import draw
from splitbrain.harness.folder.simulation_outcome import SimulationOutcome
from splitbrain.harness.judge.simulated_outcomes import judged
from splitbrain.harness.run.world.recovery import LIVENESS
from splitbrain.harness.run.world.simulate import simulate
from splitbrain.simulation.kraft.all_invariants import INVARIANTS
from splitbrain.simulation.kraft.system import KraftSimulation

#: Time of a prototype with a core of 500 lines for 30 simulated seconds, milliseconds; its
#: slower figure. The aim is at most so many times as much.
_PROTOTYPE_MS: Final = 52
_AIM_TIMES: Final = 2
_UNIT_S: Final = 30
_US: Final = 1_000_000
#: Acknowledged operations a second that are aimed at, and how many are asked for: nodes that do not
#: lead refuse some, and faults cost some.
_ASKED: Final = {2: 2.7, 10: 13.6, 50: 64.0}
_BASE_RATE: Final = 10
_BROKERS: Final = 2
_TIMES_S: Final = (10, 30, 90)
_CLIENTS: Final = (5, 10, 20)
_ALL_MUTED: Final = frozenset({*(kind.id for kind in INVARIANTS), *LIVENESS})
_ROW: Final = "{:<34}{:>8}{:>8}{:>8}{:>9}{:>10}{:>10}{:>13}"


class Measured(msgspec.Struct, kw_only=True):
    """One world, run again and again."""

    name: str
    scenario: Scenario
    system: SimulatedSystem = KraftSimulation()
    muted: frozenset[str] = frozenset()
    is_judged: bool = True
    #: Processor time of each repeat, in seconds.
    cpu_s: list[float] = []
    outcome: SimulationOutcome | None = None

    def repeat(self) -> None:
        """Run it once more.

        Raises:
            SystemExit: the correct code raised an alarm, or two repeats differ.
        """
        gc.collect()
        began_s = time.process_time()
        outcome = simulate(self.scenario, self.system, muted=self.muted)
        checks = judged(outcome).checks if self.is_judged else ()
        self.cpu_s.append(time.process_time() - began_s)
        against = [check.checker for check in checks if check.verdict is not Verdict.VALID]
        if outcome.violation is not None or against:
            raise SystemExit(f"{self.name}: {outcome.violation or against}")
        if self.outcome is not None and self.outcome.trace_hash != outcome.trace_hash:
            raise SystemExit(f"{self.name}: two repeats differ")
        self.outcome = outcome

    @property
    def made(self) -> SimulationOutcome:
        """Return the outcome of the last repeat."""
        assert self.outcome is not None
        return self.outcome

    @property
    def simulated_s(self) -> float:
        """Virtual time of one run, recovery included."""
        return self.made.virtual_us / _US

    @property
    def achieved(self) -> float:
        """Acknowledged operations per second of load."""
        return self.made.figures["acknowledged"] * _US / self.scenario.load_us

    def unit_ms(self, cpu_s: float) -> float:
        """Milliseconds for 30 simulated seconds."""
        return cpu_s * 1_000 * _UNIT_S / self.simulated_s

    @property
    def row(self) -> dict[str, object]:
        """As facts."""
        median_s = statistics.median(self.cpu_s)
        return {
            "name": self.name,
            "cpu_ms_median": round(self.unit_ms(median_s), 1),
            "cpu_ms_min": round(self.unit_ms(min(self.cpu_s)), 1),
            "cpu_ms_max": round(self.unit_ms(max(self.cpu_s)), 1),
            "operations_per_s": round(self.achieved, 1),
            "steps": self.made.steps,
            "steps_per_cpu_s": round(self.made.steps / median_s),
            "simulated_s": round(self.simulated_s, 1),
            "simulated_s_per_cpu_s": round(self.simulated_s / median_s),
            "trace_hash": self.made.trace_hash,
        }


def fixed_worlds(load_s: int) -> dict[str, list[Measured]]:
    """All that is measured of fixed worlds, by the question that it answers."""
    asked = _ASKED[_BASE_RATE]
    base = fixed_world(rate=asked, load_s=load_s)
    framed = msgspec.structs.replace(base, through_codec=True)
    rates = [
        Measured(name=f"{rate} operations a second", scenario=fixed_world(rate=ask, load_s=load_s))
        for rate, ask in _ASKED.items()
    ]
    times = [
        Measured(
            name=f"{time_s} s of load",
            scenario=fixed_world(rate=asked, load_s=time_s * load_s // _UNIT_S),
        )
        for time_s in _TIMES_S
    ]
    clients = [
        Measured(
            name=f"{count} clients, the same rate each",
            scenario=fixed_world(rate=asked * count / 5, load_s=load_s, clients=count),
        )
        for count in _CLIENTS
    ]
    shares = [
        Measured(name="without invariants", scenario=base, muted=_ALL_MUTED),
        Measured(name="without checkers of outcomes", scenario=base, is_judged=False),
        Measured(name="without the trace hash", scenario=base, system=UnhashedSimulation()),
        Measured(name="messages through the wire codec", scenario=framed),
    ]
    metadata = [
        Measured(
            name=f"{rate} operations a second, metadata",
            scenario=fixed_world(rate=_ASKED[rate], load_s=load_s, brokers=_BROKERS),
        )
        for rate in (_BASE_RATE, max(_ASKED))
    ]
    return {
        "rate": rates,
        "metadata": metadata,
        "share": shares,
        "time": times,
        "clients": clients,
    }


class Growth(msgspec.Struct, frozen=True):
    """Return the cost of one more unit of size, in milliseconds, between the sizes measured."""

    lower_ms: float
    upper_ms: float

    @property
    def ratio(self) -> float | None:
        """1: the cost grows linearly; above: faster; None: too noisy to tell."""
        return round(self.upper_ms / self.lower_ms, 2) if self.lower_ms > 0 else None


def growth(worlds: Sequence[Measured], size_of: Callable[[Measured], float]) -> Growth:
    """From the least of three worlds to the middle one, and from there to the greatest."""
    sizes = [size_of(world) for world in worlds]
    costs = [statistics.median(world.cpu_s) * 1_000 for world in worlds]
    lower, upper = (
        (costs[index + 1] - costs[index]) / (sizes[index + 1] - sizes[index]) for index in (0, 1)
    )
    return Growth(round(lower, 2), round(upper, 2))


def swarm(seeds: int, state_machine: str) -> dict[str, object]:
    """Return the worlds that a sweep draws, each once, drawing and judging included.

    Raises:
        SystemExit: the correct code raised an alarm.
    """
    trial = SimOptions(system=DEFAULT_SYSTEM, state_machine=state_machine)
    cpu_s: list[float] = []
    steps = virtual_us = acknowledged = 0
    for seed in range(seeds):
        gc.collect()
        began_s = time.process_time()
        done = judged(simulate(draw(seed, trial), KraftSimulation()))
        cpu_s.append(time.process_time() - began_s)
        if done.failed_by:
            raise SystemExit(f"{state_machine}, seed {seed}: {done.failed_by}")
        steps += done.outcome.steps
        virtual_us += done.outcome.virtual_us
        acknowledged += done.outcome.figures["acknowledged"]
    whole_s = sum(cpu_s)
    return {
        "seeds": seeds,
        "cpu_ms_a_seed_median": round(statistics.median(cpu_s) * 1_000, 1),
        "cpu_ms_a_seed_max": round(max(cpu_s) * 1_000, 1),
        "seeds_a_minute_and_core": round(60 * seeds / whole_s),
        "steps_per_cpu_s": round(steps / whole_s),
        "simulated_s_a_seed": round(virtual_us / _US / seeds, 1),
        "simulated_s_per_cpu_s": round(virtual_us / _US / whole_s),
        "operations_a_seed": round(acknowledged / seeds),
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=int, default=20, help="of the swarm")
    parser.add_argument("--repeats", type=int, default=5, help="of each fixed world")
    parser.add_argument("--smoke", action="store_true", help="a tenth of the time; proves nothing")
    options = parser.parse_args(arguments)
    groups = fixed_worlds(_UNIT_S // 10 if options.smoke else _UNIT_S)
    measured = [world for group in groups.values() for world in group]
    # The first run imports and warms up.
    judged(simulate(fixed_world(rate=2, load_s=3), KraftSimulation()))
    for _ in range(options.repeats):
        for world in measured:
            world.repeat()
    drawn = {machine: swarm(options.seeds, machine) for machine in STATE_MACHINES}
    _print(groups, drawn)
    print(
        json.dumps(
            {
                "bench": "simulation",
                "python": platform.python_version(),
                "is_smoke": options.smoke,
                "repeats": options.repeats,
                "world_seed": WORLD_SEED,
                "fixed": {name: [world.row for world in group] for name, group in groups.items()},
                "growth_with_time": _facts(_time_growth(groups)),
                "growth_with_clients": _facts(_client_growth(groups)),
                "growth_with_operations": _facts(_operation_growth(groups)),
                "swarm": drawn,
            }
        )
    )
    return 0


def _print(groups: dict[str, list[Measured]], drawn: dict[str, dict[str, object]]) -> None:
    print(
        "three voters, registers, a fault every 2-3 s, every invariant and the checkers of "
        "outcomes on (linearizability in both); five clients where nothing else is said\n"
        f"processor time in ms for {_UNIT_S} simulated seconds\n"
    )
    head = ("world", "median", "min", "max", "against", "achieved", "steps a", "simulated s")
    below = ("", "ms", "ms", "ms", f"{_BASE_RATE} a s", "ops/s", "CPU-s", "a CPU-s")
    print(_ROW.format(*head))
    print(_ROW.format(*below))
    base = groups["rate"][list(_ASKED).index(_BASE_RATE)]
    base_ms = base.unit_ms(statistics.median(base.cpu_s))
    for group in groups.values():
        for world in group:
            row = world.row
            median_ms = world.unit_ms(statistics.median(world.cpu_s))
            print(
                _ROW.format(
                    world.name,
                    f"{median_ms:.0f}",
                    f"{world.unit_ms(min(world.cpu_s)):.0f}",
                    f"{world.unit_ms(max(world.cpu_s)):.0f}",
                    f"{100 * median_ms / base_ms:.0f} %",
                    f"{world.achieved:.1f}",
                    f"{row['steps_per_cpu_s']:,}",
                    f"{row['simulated_s_per_cpu_s']:,}",
                )
            )
        print()
    _say_aim(groups["rate"])
    for what, grown in (
        ("simulated second", _time_growth(groups)),
        ("client", _client_growth(groups)),
        ("operation a second, by more clients,", _operation_growth(groups)),
    ):
        print(
            f"one more {what} costs {grown.lower_ms} ms between the smaller sizes and "
            f"{grown.upper_ms} ms between the larger: {grown.ratio or '?'} times (1: linear)"
        )
    for machine, row in drawn.items():
        print(
            f"swarm of {machine}, {row['seeds']} seeds: {row['seeds_a_minute_and_core']:,} seeds a "
            f"minute and core, {row['cpu_ms_a_seed_median']} ms a seed at the median, "
            f"{row['simulated_s_a_seed']} simulated seconds and {row['operations_a_seed']} "
            f"acknowledged operations each; {row['steps_per_cpu_s']:,} steps and "
            f"{row['simulated_s_per_cpu_s']:,} simulated seconds a CPU-second"
        )


def _time_growth(groups: dict[str, list[Measured]]) -> Growth:
    return growth(groups["time"], lambda world: world.simulated_s)


def _client_growth(groups: dict[str, list[Measured]]) -> Growth:
    return growth(groups["clients"], lambda world: world.scenario.load.clients)


def _operation_growth(groups: dict[str, list[Measured]]) -> Growth:
    # How many of them are refused depends on how many clients are pinned to which node.
    return growth(groups["clients"], lambda world: world.achieved)


def _facts(grown: Growth) -> dict[str, float | None]:
    return {"lower_ms": grown.lower_ms, "upper_ms": grown.upper_ms, "ratio": grown.ratio}


def _say_aim(rates: Sequence[Measured]) -> None:
    """Where the aim is met, and where not."""
    aim_ms = _AIM_TIMES * _PROTOTYPE_MS
    for world in rates:
        median_ms = world.unit_ms(statistics.median(world.cpu_s))
        verdict = "met" if median_ms <= aim_ms else "not met"
        print(
            f"aim of {aim_ms} ms ({_AIM_TIMES} times a prototype's {_PROTOTYPE_MS} ms) at "
            f"{world.name}: {verdict}, {median_ms / _PROTOTYPE_MS:.1f} times the prototype"
        )


if __name__ == "__main__":
    sys.exit(main())
