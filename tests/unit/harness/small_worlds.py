"""Worlds of a fraction of a second, and outcomes as tests want them."""

from functools import cache
from typing import Any

import msgspec

from splitbrain.contracts.scenario import LoadOptions, Scenario, Violation
from splitbrain.harness.campaign.sweep.trial import simulated_system
from splitbrain.harness.folder.simulation_outcome import SimulationOutcome
from splitbrain.harness.run.world.simulate import simulate
from splitbrain.history.course import Phase
from splitbrain.history.records import Event

#: Every voter answers before its vote is durable: the first election shows it.
QUICK_BUG = "vote-not-persisted"


def scenario(**fields: Any) -> Scenario:
    load = LoadOptions(clients=2, rate=60.0, timeout_us=300_000)
    return Scenario(**{"system": "kraft", "seed": 5, "load": load, "load_us": 900_000, **fields})


@cache
def calm() -> SimulationOutcome:
    """A correct world without faults."""
    return simulate(scenario(), simulated_system("kraft"), is_recording=True)


@cache
def broken() -> SimulationOutcome:
    """A world that violates an invariant soon."""
    bugged = scenario(bugs=(QUICK_BUG,))
    return simulate(bugged, simulated_system("kraft"), is_recording=True)


def event(index: int, type_: Any, f: str, value: Any, time_ms: int, process: int = 0) -> Event:
    return Event(index, time_ms * 1_000_000, process, type_, f, key="r0", value=value)


def lying_history() -> tuple[Event, ...]:
    """A read that gives what was overwritten before it began."""
    return (
        event(0, "invoke", "write", 1, 1),
        event(1, "ok", "write", 1, 2),
        event(2, "invoke", "write", 2, 3),
        event(3, "ok", "write", 2, 4),
        event(4, "invoke", "read", None, 5),
        event(5, "ok", "read", 1, 6),
    )


def outcome(**fields: Any) -> SimulationOutcome:
    """An outcome of nothing but these fields."""
    usual: dict[str, Any] = {
        "scenario": scenario(),
        "violation": None,
        "trace_hash": "0" * 32,
        "steps": 100,
        "virtual_us": 5_000_000,
        "events": (),
        "faults": (),
        "struck": (),
        "state_events": {},
        "committed_logs": {},
        "unlike": None,
        "figures": {"commits": 3},
        "phases": (Phase(0, "load-started"), Phase(1, "converged")),
    }
    return SimulationOutcome(**{**usual, **fields})


def violation(**fields: Any) -> Violation:
    seen = Violation("INV-01", "n1 and n2 lead epoch 3", time_us=4_000_000, step=77)
    return msgspec.structs.replace(seen, **fields)
