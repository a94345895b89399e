"""Traits of worlds, by which ``splitbrain sim --world voters=5,snapshots`` chooses.

A choice leaves seeds out and changes no world: a seed stands for the same one whatever is chosen.
Must never look at more than the scenario.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, TypeAlias

from splitbrain.contracts.errors import UsageError
from splitbrain.contracts.nearest import or_nearest
from splitbrain.contracts.scenario import Scenario
from splitbrain.contracts.simulation import SimulatedSystem
from splitbrain.harness.campaign.sweep.swarm import SMALL_SEGMENT_BYTES_MAX
from splitbrain.nemesis.fault_options import AFTER
from splitbrain.nemesis.swarm import SwarmLimits

#: Values of a world by the name of the trait; most have one.
Traits: TypeAlias = Mapping[str, frozenset[str]]
#: Names and values that a world must have.
Wanted: TypeAlias = tuple[tuple[str, str], ...]

#: Value of a name that is written alone.
YES: Final = "yes"
_NO: Final = "no"
#: Worlds that are drawn to see which values there are; the rarest is in one of ten.
SAMPLE: Final = range(300)


def _kinds(scenario: Scenario) -> Iterable[str]:
    """Yield the kinds of a world's faults, and ``rot`` for any kind of rot."""
    for fault in scenario.faults:
        yield fault.kind
        if fault.kind.startswith("rot-"):
            yield "rot"


def _has_weather(scenario: Scenario) -> bool:
    network = scenario.network
    chances = (network.slow_chance, network.reset_chance, network.lost_answer_chance)
    return any((*chances, network.stall_chance, scenario.disk.slow_chance))


def _switch(has: Callable[[Scenario], object]) -> Callable[[Scenario], Iterable[str]]:
    return lambda scenario: (YES if has(scenario) else _NO,)


TRAITS: Final[dict[str, Callable[[Scenario], Iterable[str]]]] = {
    "voters": lambda scenario: (str(scenario.nodes),),
    "observers": lambda scenario: (str(scenario.observers),),
    "workload": lambda scenario: (scenario.load.workload,),
    "recovery": lambda scenario: (scenario.recovery.scope,),
    "fault": _kinds,
    "sequels": _switch(lambda scenario: any(AFTER in fault.options for fault in scenario.faults)),
    "weather": _switch(_has_weather),
    "crowd": _switch(lambda scenario: scenario.load.clients > SwarmLimits().clients_max),
    "drift": _switch(lambda scenario: scenario.drift_ppm),
    "codec": _switch(lambda scenario: scenario.through_codec),
    "small-segments": _switch(lambda scenario: scenario.segment_bytes <= SMALL_SEGMENT_BYTES_MAX),
}


def traits_of(scenario: Scenario, system: SimulatedSystem) -> Traits:
    """Return all traits of a world, its system's own among them."""
    own = {name: frozenset((value,)) for name, value in system.traits(scenario).items()}
    return {name: frozenset(values(scenario)) for name, values in TRAITS.items()} | own


def read_world(text: str) -> Wanted:
    """Return what ``voters=5,snapshots`` asks for."""
    parts = (part.strip().partition("=") for part in text.split(","))
    return tuple((name.strip(), value.strip() if sign else YES) for name, sign, value in parts)


def has_traits(wanted: Wanted, traits: Traits) -> bool:
    """Return whether a world is one of those that are asked for."""
    return all(value in traits[name] for name, value in wanted)


def check_world(wanted: Wanted, sample: Sequence[Traits]) -> None:
    """Refuse names and values that no world has; ``sample`` has those of many.

    Raises:
        UsageError: says which, and what there is.
    """
    for place, (name, value) in enumerate(wanted):
        if name not in sample[0]:
            problem = f"worlds have no trait {name!r} (--world)"
            raise UsageError(problem, or_nearest(name, sample[0], "traits"))
        there = sorted({value for traits in sample for value in traits[name]})
        if value not in there:
            values = f"The values of {name} are: {', '.join(there)}"
            raise UsageError(f"no seed draws a world with {name}={value}", values)
        is_single = all(len(traits[name]) == 1 for traits in sample)
        if is_single and any(name == other for other, _ in wanted[:place]):
            raise UsageError(f"--world names {name} twice", "Name it once")
