"""Running one seed from start to verdict."""

import msgspec

from nodes.quorum.bugs import NO_BUGS, PlantedBugs
from nodes.quorum.errors import InvariantViolation
from tests.simulation.invariants import has_converged
from tests.simulation.swarm import Swarm, draw_swarm
from tests.simulation.world import World


class Outcome(msgspec.Struct, frozen=True):
    """What one seed came to."""

    seed: int
    #: Id of the violated invariant, None if all held.
    violated: str | None
    problem: str
    commit_count: int
    read_count: int
    epoch_count: int
    truncation_count: int
    event_count: int


def run_seed(
    seed: int,
    bugs: PlantedBugs = NO_BUGS,
    *,
    swarm: Swarm | None = None,
    is_long: bool = False,
    muted: frozenset[str] = frozenset(),
    trace: list[str] | None = None,
) -> Outcome:
    """Runs the world of a seed: faults, healing, progress. ``muted`` invariants do not watch."""
    world = World(seed, swarm or draw_swarm(seed, is_long=is_long), bugs, muted)
    world.trace = trace
    violated: str | None = None
    problem = ""
    try:
        world.start()
        world.run_until(world.swarm.fault_phase_us)
        world.faults.heal()
        healed_at = world.now
        ghost = world.oracle.ghost
        end = healed_at + world.swarm.healing_us_max
        world.run_until(end, lambda: ghost.committed_at > healed_at)
        world.clients_rest = True
        world.run_until(end, lambda: has_converged(ghost, healed_at))
        world.oracle.finished(healed_at)
    except InvariantViolation as violation:
        violated = violation.invariant
        problem = str(violation)
        world.note(f"VIOLATION {problem}")
    ghost = world.oracle.ghost
    return Outcome(
        seed=seed,
        violated=violated,
        problem=problem,
        commit_count=len(ghost.committed),
        read_count=ghost.read_count,
        epoch_count=len(ghost.leaders),
        truncation_count=ghost.truncation_count,
        event_count=world.event_count,
    )
