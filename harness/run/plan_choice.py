"""From what ``--nemesis`` names to a schedule: fault kinds, a scripted plan or a plan file.

Starts nothing and writes nothing.
"""

import random
from pathlib import Path

from splitbrain.contracts.errors import UsageError
from splitbrain.contracts.fault import Fault
from splitbrain.contracts.names import NodeName
from splitbrain.contracts.nearest import or_nearest
from splitbrain.contracts.system import System
from splitbrain.history.plan import PLAN_FILE_ENDINGS
from splitbrain.nemesis.kinds import kind_names
from splitbrain.nemesis.plan import NONE, WantedFault, check_pace, parse, schedule
from splitbrain.nemesis.plan_file import (
    PlanFile,
    ReadPlan,
    from_file_faults,
    parse_plan_file,
    with_options,
)
from splitbrain.nemesis.scripted import SCRIPTED, least_time_limit_ms

#: Of a system that does not tell.
_FAILOVER_MS = 2000


def plan_faults(
    nemesis: str,
    nodes: tuple[NodeName, ...],
    seed: int,
    time_limit_ms: int,
    *,
    timeout_ms: int = 0,
    failover_ms: int = 0,
    observers: tuple[NodeName, ...] = (),
) -> tuple[tuple[Fault, ...], dict[str, dict[str, str]]]:
    """Return the schedule that ``--nemesis`` names, and what the plan sets, by system.

    It names fault kinds, a scripted plan, a plan file, or none. An operation's timeout and the
    time that a failover takes are together the shortest interval of a plan file.

    Raises:
        UsageError: it is none of these, or does not fit.
    """
    if nemesis == NONE:
        return (), {}
    path = Path(nemesis)
    if nemesis in SCRIPTED:
        plan = SCRIPTED[nemesis](time_limit_ms)
        if not plan.faults:
            raise UsageError(
                f"no fault of the plan {nemesis!r} fits into a time limit of "
                f"{time_limit_ms / 1000:g} s",
                f"Choose a --time-limit of at least {least_time_limit_ms(nemesis) / 1000:g}, "
                "or --nemesis none",
            )
        return _written(ReadPlan(plan), nodes, observers, time_limit_ms), plan.settings
    if path.suffix in PLAN_FILE_ENDINGS:
        read = _read_plan_file(path)
        plan = read.plan
        if plan.nemesis is None:
            return _written(read, nodes, observers, time_limit_ms), plan.settings
        wanted = _wanted_of(plan, nemesis)
        kinds = [item.kind for item in wanted]
        check_pace(plan.pace, kinds, timeout_ms, failover_ms)
        drawn = schedule(wanted, nodes, random.Random(seed), time_limit_ms, plan.pace, observers)
        return with_options(drawn, plan, nemesis), plan.settings
    _refuse_other_plans(nemesis)
    drawn = schedule(parse(nemesis), nodes, random.Random(seed), time_limit_ms, observers=observers)
    return drawn, {}


def _written(
    read: ReadPlan, nodes: tuple[NodeName, ...], observers: tuple[NodeName, ...], time_limit_ms: int
) -> tuple[Fault, ...]:
    plan = read.plan
    return from_file_faults(
        plan.faults,
        nodes,
        time_limit_ms,
        overlap=plan.overlap,
        beyond_promise=plan.beyond_promise,
        places=read.places,
        observers=observers,
    )


def _wanted_of(plan: PlanFile, name: str) -> tuple[WantedFault, ...]:
    try:
        return parse(plan.nemesis or NONE)
    except UsageError as error:
        raise UsageError(f"{name}: {error.problem}", error.next_step) from error


def failover_ms(system: System, settings: dict[str, str]) -> int:
    """About how long the system takes to replace a leader, as far as anybody knows."""
    simulation = system.simulation()
    if simulation is None:
        return _FAILOVER_MS
    try:
        return simulation.failover_us(settings) // 1000
    except ValueError:
        # A setting that is no number; the system refuses it by name.
        return _FAILOVER_MS


def _refuse_other_plans(nemesis: str) -> None:
    """Refuse what is no list of faults: misspelt names, files of other kinds, plans in a list."""
    items = [item.strip() for item in nemesis.split(",")]
    for item in items:
        if len(items) > 1 and (item in SCRIPTED or Path(item).suffix in PLAN_FILE_ENDINGS):
            raise UsageError(
                f"the plan {item!r} stands in a list, and a plan is a whole schedule",
                "Name the plan alone, or a list of fault kinds",
            )
    first = items[0].partition(":")[0]
    if len(items) > 1 or first in kind_names():
        return
    if Path(nemesis).exists():
        raise UsageError(
            f"{nemesis} is no plan file",
            f"Name a file that ends in {' or '.join(PLAN_FILE_ENDINGS)}, or fault kinds such as "
            "partition,kill",
        )
    raise UsageError(
        f"there is no fault or plan called {nemesis!r}",
        or_nearest(first, (*kind_names(), *SCRIPTED, NONE), "faults and plans"),
    )


def _read_plan_file(path: Path) -> ReadPlan:
    try:
        content = path.read_bytes()
    except OSError as error:
        raise UsageError(
            f"the plan file {path} cannot be read: {error.strerror or error}",
            "Name a file that exists, or fault kinds such as partition,kill",
        ) from error
    return parse_plan_file(content, str(path))
