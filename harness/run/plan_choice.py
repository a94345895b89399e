"""From what ``--nemesis`` names to a schedule: fault kinds, a scripted plan or a plan file.

Starts nothing and writes nothing.
"""

import math
import random
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from splitbrain.contracts.errors import UsageError
from splitbrain.contracts.experiment import TIME_LIMIT_S_MAX, Experiment
from splitbrain.contracts.fault import US_PER_MS, Fault
from splitbrain.contracts.names import NodeName
from splitbrain.contracts.nearest import or_nearest
from splitbrain.contracts.system import System
from splitbrain.harness.folder.plan_checkers import allowed_anomalies
from splitbrain.harness.folder.scenario_text import SCENARIO_FILE
from splitbrain.history.blobs import is_blob, unpack
from splitbrain.history.plan import PLAN_FILE_ENDINGS, Noticing
from splitbrain.nemesis.kinds import fault_kind, kind_names, silent_kind_names
from splitbrain.nemesis.plan import NONE, Pace, WantedFault, check_pace, parse, schedule
from splitbrain.nemesis.plan_file import (
    PlanFile,
    ReadPlan,
    from_file_faults,
    parse_plan_file,
    with_options,
)
from splitbrain.nemesis.scripted import SCRIPTED, least_time_limit_ms
from splitbrain.nemesis.targets import CONTROLLER, LEADER, random_target

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
    notices_ms: int = 0,
    names_leaders: bool = True,
    plan_file: str | None = None,
) -> tuple[tuple[Fault, ...], dict[str, dict[str, str]]]:
    """Return the schedule that ``--nemesis`` names, and what the plan sets, by system.

    It names fault kinds, a scripted plan, a plan file, or none. An operation's timeout and the
    time that a failover takes are together the shortest interval of a plan file. Faults that are
    drawn without one last long enough for the system to notice them, every other one at least; and
    where nobody can say who leads, those that would be aimed at the leader hit one node by chance.
    ``plan_file`` is the content of the plan file, where it has been read already.

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
        if plan_file is None:
            nemesis, plan_file = plan_file_of(nemesis)
        read = parse_plan_file((plan_file or "").encode(errors="surrogateescape"), nemesis)
        plan = read.plan
        if plan.nemesis is None:
            return _written(read, nodes, observers, time_limit_ms), plan.settings
        wanted = _wanted_of(plan, nemesis, timeout_ms, failover_ms)
        drawn = schedule(wanted, nodes, random.Random(seed), time_limit_ms, plan.pace, observers)
        return with_options(drawn, plan, nemesis), plan.settings
    _refuse_other_plans(nemesis)
    pace = Pace()
    if notices_ms > pace.fault_min_ms:
        longest_ms = max(pace.fault_max_ms, 2 * notices_ms)
        pace = Pace(long_ms=notices_ms * 3 // 2, fault_max_ms=longest_ms)
    wanted = parse(nemesis)
    if not names_leaders:
        wanted = tuple(map(_without_leader, wanted))
    drawn = schedule(wanted, nodes, random.Random(seed), time_limit_ms, pace, observers)
    return drawn, {}


def _without_leader(item: WantedFault) -> WantedFault:
    is_open = item.target is None and fault_kind(item.kind).first_target == LEADER
    return WantedFault(item.kind, random_target(1)) if is_open else item


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


def _wanted_of(
    plan: PlanFile, name: str, timeout_ms: int, failover_ms: int
) -> tuple[WantedFault, ...]:
    """Return the faults that a plan file draws, at a pace that fits; errors name the file."""
    try:
        wanted = parse(plan.nemesis or NONE)
        check_pace(plan.pace, [item.kind for item in wanted], timeout_ms, failover_ms)
    except UsageError as error:
        raise UsageError(f"{name}: {error.problem}", error.next_step) from error
    return wanted


def notices_ms(system: System) -> int:
    """Return how long the system takes to notice a fault, in ms; 0: as long as faults last."""
    return round(1000 * (system.tempo().notices_s or 0))


def noticing_of(
    system: System,
    faults: Sequence[Fault],
    time_limit_s: float,
    draw: Callable[[int], Sequence[Fault]] | None,
) -> Noticing | None:
    """Return what the system needs to notice faults; None where its adapter does not say.

    ``draw`` returns the faults of another time limit, in ms; None: they are given, not drawn.
    """
    after_ms = notices_ms(system)
    if not after_ms:
        return None
    kinds = silent_kind_names()

    def missing(planned: Sequence[Fault]) -> set[str]:
        long = {fault.kind for fault in planned if fault.duration_us > after_ms * US_PER_MS}
        return {fault.kind for fault in planned if fault.kind in kinds} - long

    enough_s = None
    if draw is not None and missing(faults):
        limits_s = _longer_limits_s(max(time_limit_s, after_ms / 1000), len(faults))
        enough_s = next((limit for limit in limits_s if not missing(draw(1000 * limit))), None)
    return Noticing(after_ms / 1000, kinds, enough_s)


def _longer_limits_s(time_limit_s: float, faults: int) -> Iterator[int]:
    """Yield time limits, each a quarter longer than the last, until every fault could be long."""
    limit_s, most_s = time_limit_s, min(TIME_LIMIT_S_MAX, 4 * time_limit_s * (faults + 1))
    while (limit_s := 10 * math.ceil(limit_s / 8)) <= most_s:
        yield limit_s


def failover_ms(system: System, settings: dict[str, str]) -> int:
    """About how long the system takes to replace a leader, as far as anybody knows."""
    if (declared_s := system.tempo().failover_s) is not None:
        return round(1000 * declared_s)
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


def plan_file_of(nemesis: str) -> tuple[str, str | None]:
    """Return the name of a plan file and its content, of a path or of what stands for the file.

    Anything else is returned as it is, without a content. Bytes that are no text stay as they are.

    Raises:
        UsageError: there is no such file, or it was cut or changed on its way.
    """
    if is_blob(nemesis):
        blob = unpack(nemesis)
        if blob.name == SCENARIO_FILE or not blob.name.endswith(PLAN_FILE_ENDINGS):
            raise UsageError(
                f"--nemesis is given the file {blob.name}, which is no plan file",
                "Give it to the command and the option that its line names",
            )
        return blob.name, blob.text
    if not nemesis.endswith(PLAN_FILE_ENDINGS):
        return nemesis, None
    return nemesis, _read_plan_file(Path(nemesis)).decode(errors="surrogateescape")


def _read_plan_file(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise UsageError(
            f"the plan file {path} cannot be read: {error.strerror or error}",
            "Name a file that exists, or fault kinds such as partition,kill",
        ) from error


def check_settled(experiment: Experiment, faults: Sequence[Fault], system: System) -> None:
    """Refuse what the system cannot be, have done to it, or allow, now that all is settled.

    Raises:
        UsageError: says what.
    """
    system.check_options(experiment)
    allowed_anomalies(system)
    if any(fault.target == CONTROLLER for fault in faults) and not system.names_controllers:
        raise UsageError(
            f"{system.name} has no {CONTROLLER}: who leads there decides about all",
            f"Use {LEADER}, or a system that has one",
        )
