"""One seed of a sweep: drawn, run, judged, and kept where it failed.

Runs in a worker process and reports small records, for a sweep has thousands of seeds. The checkers
are imported by the worker alone, since they take a second to load. Must never let one seed change
another's outcome.
"""

import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from splitbrain.contracts.budget import seldom_collected
from splitbrain.contracts.errors import HarnessError
from splitbrain.contracts.scenario import Scenario, Violation
from splitbrain.contracts.simulation import SimulatedSystem
from splitbrain.harness.campaign.sweep.options import SimOptions, seed_words
from splitbrain.harness.folder.coverage_cells import CoverageCell
from splitbrain.history.seed_records import Found

if TYPE_CHECKING:
    from splitbrain.harness.campaign.sweep.world_traits import Traits
    from splitbrain.harness.folder.simulation_outcome import JudgedOutcome, SimulationOutcome

#: Purpose of a run: try a seed, try it again to compare, or try it and keep its run folder.
Purpose = Literal["first", "again", "keep"]

_NS_PER_US = 1_000


class SeedResult(msgspec.Struct, frozen=True, kw_only=True):
    """Result of one seed."""

    seed: int
    purpose: Purpose
    #: Reason why there is none, with the traceback: a defect of ours; None in order.
    crash: str | None = None
    trace_hash: str = ""
    steps: int = 0
    virtual_us: int = 0
    violation: Violation | None = None
    #: Invariant and checkers that found something.
    failed_by: tuple[str, ...] = ()
    sentence: str | None = None
    #: Undecided checkers, each with its reason.
    unknown: dict[str, str] = {}
    operations: int = 0
    figures: dict[str, int] = {}
    workload: str = ""
    #: Checkers that found something, invariants among them.
    found: tuple[Found, ...] = ()
    coverage: tuple[CoverageCell, ...] = ()
    folder: str | None = None
    #: Wall time, for rates only.
    seconds: float = 0.0
    #: Whether it was not run, since its world is none that was asked for.
    is_skipped: bool = False

    @property
    def fingerprint(self) -> tuple[object, ...]:
        """Return the parts that must be the same however often the seed is run."""
        ended = (self.trace_hash, self.steps, self.virtual_us, self.violation, self.operations)
        return (*ended, self.failed_by, self.unknown)


def simulated_system(name: str) -> SimulatedSystem:
    """Return the maker of a system's simulated nodes; raise UsageError if it has none."""
    from splitbrain.harness.run.options import check_simulated
    from splitbrain.systems.registry import system

    return check_simulated(system(name))


def draw(seed: int, options: SimOptions) -> Scenario:
    """Return the world of a seed."""
    from splitbrain.harness.campaign.sweep.swarm import draw_scenario
    from splitbrain.simulation.world.streams import Streams

    simulation = simulated_system(options.system)
    scenario = draw_scenario(
        seed,
        system=options.system,
        bugs=options.bugs,
        beyond_promise=options.beyond_promise,
        happenings=simulation.happenings,
        hints=simulation,
    )
    state_machine = options.state_machine or scenario.state_machine
    stream = Streams(seed, "state machine").stream(state_machine)
    return simulation.dressed(scenario, state_machine, stream)


def run(scenario: Scenario, *, is_recording: bool = False) -> "SimulationOutcome":
    """Run a scenario of a system that is known by its name."""
    from splitbrain.harness.run.world.simulate import simulate

    with seldom_collected():
        return simulate(scenario, simulated_system(scenario.system), is_recording=is_recording)


def try_seed(options: SimOptions, seed: int, purpose: Purpose) -> SeedResult:
    """Draw, run and judge one seed; its folder is written for ``keep``.

    Never raises: errors are the result's ``crash``.
    """
    words = seed_words(options, seed)
    return tried(
        seed,
        purpose,
        lambda: draw(seed, options),
        options.runs_folder,
        lambda scenario: is_wanted(scenario, options),
        drawn_by=words,
    )


def drawn_traits(seed: int, options: SimOptions) -> "Traits":
    """Return the traits of a seed's world."""
    from splitbrain.harness.campaign.sweep.world_traits import traits_of

    return traits_of(draw(seed, options), simulated_system(options.system))


def is_wanted(scenario: Scenario, options: SimOptions) -> bool:
    """Return whether a world has the traits that the sweep is to have."""
    if options.world is None:
        return True
    from splitbrain.harness.campaign.sweep.world_traits import has_traits, read_world, traits_of

    traits = traits_of(scenario, simulated_system(options.system))
    return has_traits(read_world(options.world), traits)


def tried(
    seed: int,
    purpose: Purpose,
    draw: Callable[[], Scenario],
    runs_folder: Path,
    is_wanted: Callable[[Scenario], bool] = lambda _scenario: True,
    **kept: Any,
) -> SeedResult:
    """Try the world that ``draw`` gives; ``kept`` is for ``keep_sweep_run``. Never raises."""
    from splitbrain.harness.judge.simulated_outcomes import judged
    from splitbrain.harness.run.world.folder import keep_sweep_run

    began = time.perf_counter()
    try:
        scenario = draw()
        if not is_wanted(scenario):
            return SeedResult(seed=seed, purpose=purpose, is_skipped=True)
        outcome = judged(run(scenario, is_recording=purpose == "keep"))
        folder = keep_sweep_run(outcome, runs_folder, **kept) if purpose == "keep" else None
    except HarnessError as error:
        return SeedResult(seed=seed, purpose=purpose, crash=str(error))
    # A defect of ours ends this seed alone, and is reported with its traceback.
    except Exception:  # noqa: BLE001
        return SeedResult(seed=seed, purpose=purpose, crash=traceback.format_exc())
    return result_of(outcome, seed, purpose, folder, time.perf_counter() - began)


def result_of(
    outcome: "JudgedOutcome", seed: int, purpose: Purpose, folder: Path | None, seconds: float
) -> SeedResult:
    """Return the part of a judged outcome that a sweep needs."""
    from splitbrain.harness.judge.fault_coverage import fault_coverage
    from splitbrain.harness.judge.simulated_outcomes import found_by

    made = outcome.outcome
    return SeedResult(
        seed=seed,
        purpose=purpose,
        trace_hash=made.trace_hash,
        steps=made.steps,
        virtual_us=made.virtual_us,
        violation=made.violation,
        failed_by=outcome.failed_by,
        sentence=outcome.sentence,
        unknown=outcome.undecided,
        operations=sum(event.type == "ok" for event in made.events),
        figures=dict(made.figures),
        workload=made.scenario.load.workload,
        found=found_by(outcome),
        coverage=fault_coverage(
            made.faults,
            nodes=sorted(made.state_events),
            workload=made.scenario.load.workload,
            end_time=made.virtual_us * _NS_PER_US,
            state_events={str(node): events for node, events in made.state_events.items()},
        ),
        folder=None if folder is None else str(folder),
        seconds=seconds,
    )
