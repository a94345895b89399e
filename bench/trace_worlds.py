"""The worlds that guard a change of the simulation: swarms, planned runs, planted bugs.

Each has a name, under which its hash is kept in a baseline: ``registers/12`` and ``metadata/7`` are
seeds of a sweep, ``plan/registers/kill/1`` is ``splitbrain test --runtime simulated --nemesis kill
--seed 1``, ``plan/registers/flap@commits/1`` the same kind waiting for a commit, and
``bug/metadata/stale-leader-reads/3`` is a seed of a sweep with that bug. Plans import the harness;
the other worlds import no more than simulated worlds need. Source: issue 19.
"""

from collections.abc import Callable, Iterator
from typing import Final

from splitbrain.contracts.errors import CapabilityError
from splitbrain.contracts.fault import Awaited, Fault
from splitbrain.contracts.scenario import Scenario
from splitbrain.harness.campaign.sweep.swarm import draw_scenario
from splitbrain.simulation.kraft.system import KraftSimulation
from splitbrain.simulation.world.streams import Streams

REGISTERS: Final = "registers"
METADATA: Final = "metadata"
STATE_MACHINES: Final = (REGISTERS, METADATA)
_SYSTEM: Final = "kraft"
#: Seeds of the guard.
_REGISTER_SEEDS: Final = range(200)
_METADATA_SEEDS: Final = range(100)
_BUG_SEEDS: Final = range(2, 4)
_PLAN_SEEDS: Final = (1, 2)
_PLANNED_S: Final = 14.0
_PLANNED_RATE: Final = 50.0
#: A happening that every planned world meets, and after which there is something to break.
_AWAITED: Final = "commits"
_LATER: Final = Awaited(_AWAITED, delay_us=1_000, timeout_us=30_000_000)
_AT_US: Final = 2_000_000
_DURATION_US: Final = 3_000_000


def swarm_world(seed: int, bugs: tuple[str, ...] = (), state_machine: str = REGISTERS) -> Scenario:
    """Return the world that a sweep draws for a seed."""
    system = KraftSimulation()
    scenario = draw_scenario(
        seed, system=_SYSTEM, bugs=bugs, happenings=system.happenings, hints=system
    )
    return system.dressed(
        scenario, state_machine, Streams(seed, "state machine").stream(state_machine)
    )


def guard_worlds() -> Iterator[tuple[str, Callable[[], Scenario]]]:
    """Names and makers of all worlds of the guard."""
    for seed in _REGISTER_SEEDS:
        yield f"{REGISTERS}/{seed}", lambda seed=seed: swarm_world(seed)
    for seed in _METADATA_SEEDS:
        yield f"{METADATA}/{seed}", lambda seed=seed: swarm_world(seed, (), METADATA)
    yield from _planned_worlds()
    yield from _worlds_with_bugs()


def _worlds_with_bugs() -> Iterator[tuple[str, Callable[[], Scenario]]]:
    from splitbrain.systems.kraft.planted_bugs import planted_bugs

    for machine in STATE_MACHINES:
        for bug in planted_bugs().values():
            if bug.state_machine not in {None, machine}:
                continue
            for seed in _BUG_SEEDS:
                yield (
                    f"bug/{machine}/{bug.name}/{seed}",
                    lambda seed=seed, bug=bug.name, machine=machine: swarm_world(
                        seed, (bug,), machine
                    ),
                )


def _planned_worlds() -> Iterator[tuple[str, Callable[[], Scenario]]]:
    """Plans of every kind that a simulated world can carry out, at a time and after a commit."""
    from splitbrain.contracts.experiment import Experiment
    from splitbrain.harness.campaign.sweep.planned import check_plan, scenario_of
    from splitbrain.harness.run.options import PlannedTest, TestOptions, plan_test
    from splitbrain.nemesis.kinds import fault_kind, kind_names
    from splitbrain.systems.registry import system

    def planned(
        machine: str, seed: int, faults: tuple[Fault, ...] | None, kind: str
    ) -> PlannedTest:
        experiment = Experiment(
            system=_SYSTEM,
            nemesis=kind,
            nodes=max(3, fault_kind(kind).nodes_min),
            state_machine=machine,
            seed=seed,
            runtime="simulated",
            time_limit_s=_PLANNED_S,
            rate=_PLANNED_RATE,
        )
        return plan_test(TestOptions(experiment=experiment, schedule=faults), system(_SYSTEM))

    def drawn(machine: str, seed: int, kind: str) -> Scenario:
        return scenario_of(planned(machine, seed, None, kind))

    def awaiting(machine: str, seed: int, kind: str) -> Scenario:
        target = fault_kind(kind).targets()[-1 if seed % 2 else 0]
        fault = Fault(0, kind, target, _AT_US, _DURATION_US, draw=seed, when=_LATER)
        return scenario_of(planned(machine, seed, (fault,), kind))

    for machine in STATE_MACHINES:
        for kind in kind_names():
            try:
                check_plan(planned(machine, _PLAN_SEEDS[0], None, kind))
            except CapabilityError:
                continue
            for seed in _PLAN_SEEDS:
                for suffix, make in (("", drawn), (f"@{_AWAITED}", awaiting)):
                    yield (
                        f"plan/{machine}/{kind}{suffix}/{seed}",
                        lambda make=make, machine=machine, seed=seed, kind=kind: make(
                            machine, seed, kind
                        ),
                    )
