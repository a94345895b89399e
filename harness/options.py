"""From what the user asks for to a run that can be started.

Names are resolved, the plan is drawn, and what is missing is refused. Starts nothing and writes
nothing.
"""

import random
from collections.abc import Callable
from pathlib import Path

import msgspec

from contracts.errors import UsageError
from contracts.fault import ScheduledFault
from contracts.names import NodeName
from contracts.runtime import Runtime
from contracts.system import System, SystemOptions
from harness.clients import Load, reader_slots
from history.plan import sub_seeds
from nemesis.kinds import kind_names
from nemesis.nearest import or_nearest
from nemesis.plan import NONE, parse, refuse_what_cannot_be_had, schedule
from nemesis.scripted import SCRIPTED, PlanFile, from_file_faults, parse_plan_file
from systems.registry import DEFAULT_SYSTEM
from workloads.workload import Workload, workload, workload_names

NODES_MAX = 9
_PLAN_FILE_FORMATS = {".json": "json", ".toml": "toml"}


class TestOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What ``splitbrain test`` was asked for."""

    __test__ = False  # not a test case, whatever pytest makes of its name

    system: str = DEFAULT_SYSTEM
    workload: str = "register"
    workload_options: dict[str, str] = {}
    nemesis: str = "partition,pause,kill"
    nodes: int = 3
    time_limit_s: float = 60.0
    seed: int = 1
    runtime: str = "docker"
    concurrency: int = 10
    rate: float = 200.0
    operation_timeout_s: float = 1.0
    bugs: tuple[str, ...] = ()
    settings: dict[str, str] = {}
    runs_folder: Path = Path("runs")
    #: Keep the nodes' data folders also when the verdict is valid.
    keep_data: bool = False
    #: Run folder that is replayed, and its schedule, which is then used as it is.
    replay_of: str | None = None
    pinned: bool = False
    schedule: tuple[ScheduledFault, ...] | None = None


class PreparedTest(msgspec.Struct, frozen=True):
    """A run that can be started."""

    options: TestOptions
    system: System
    runtime: Runtime
    workload: Workload
    system_options: SystemOptions
    load: Load
    nodes: tuple[NodeName, ...]
    sub_seeds: dict[str, int]
    schedule: tuple[ScheduledFault, ...]


def prepare(
    options: TestOptions, system: System, make_runtime: Callable[[], Runtime]
) -> PreparedTest:
    """Check the options against each other and draw the schedule.

    The runtime is made last: a wrong option is told also where there is no engine.

    Raises:
        UsageError: something does not exist or does not fit.
        CapabilityError: the runtime cannot carry out the plan.
        HarnessError: what the runtime needs does not answer.
    """
    _check_numbers(options)
    if options.workload not in workload_names():
        raise UsageError(
            f"there is no workload called {options.workload!r}",
            or_nearest(options.workload, workload_names(), "workloads"),
        )
    for bug in options.bugs:
        if bug not in system.planted_bugs:
            raise UsageError(
                f"the system {system.name!r} has no planted bug {bug!r}",
                or_nearest(bug, system.planted_bugs, "planted bugs"),
            )
    nodes = tuple(NodeName(f"n{number}") for number in range(1, options.nodes + 1))
    seeds = sub_seeds(options.seed)
    faults = options.schedule
    if faults is None:
        faults, settings = plan_faults(
            options.nemesis, nodes, seeds["nemesis"], round(options.time_limit_s * 1000)
        )
        if not options.settings:
            options = msgspec.structs.replace(options, settings=settings.get(system.name, {}))
    operations = workload(
        options.workload,
        seed=seeds["workload"],
        slots=options.concurrency,
        readers=reader_slots(nodes, options.concurrency),
        options=options.workload_options,
    )
    runtime = make_runtime()
    refuse_what_cannot_be_had(faults, runtime.capabilities(), runtime.name)
    return PreparedTest(
        options=options,
        system=system,
        runtime=runtime,
        workload=operations,
        system_options=SystemOptions(
            nodes=options.nodes, bugs=options.bugs, settings=options.settings
        ),
        load=Load(
            concurrency=options.concurrency,
            rate=options.rate,
            time_limit_s=options.time_limit_s,
            operation_timeout_s=options.operation_timeout_s,
        ),
        nodes=nodes,
        sub_seeds=seeds,
        schedule=faults,
    )


def plan_faults(
    nemesis: str, nodes: tuple[NodeName, ...], seed: int, time_limit_ms: int
) -> tuple[tuple[ScheduledFault, ...], dict[str, dict[str, str]]]:
    """The schedule of a list of fault kinds, a scripted plan, a plan file, or none.

    The second value is what the plan sets, by system.

    Raises:
        UsageError: it is none of these, or does not fit.
    """
    if nemesis == NONE:
        return (), {}
    path = Path(nemesis)
    if nemesis in SCRIPTED or path.suffix in _PLAN_FILE_FORMATS:
        plan = SCRIPTED[nemesis](time_limit_ms) if nemesis in SCRIPTED else _read_plan_file(path)
        return from_file_faults(plan.faults, nodes, time_limit_ms), plan.settings
    first = nemesis.partition(",")[0].partition(":")[0].strip()
    if "," not in nemesis and first not in kind_names():
        raise UsageError(
            f"there is no fault or plan called {nemesis!r}",
            or_nearest(first, (*kind_names(), *SCRIPTED, NONE), "faults and plans"),
        )
    return schedule(parse(nemesis), nodes, random.Random(seed), time_limit_ms), {}


def _read_plan_file(path: Path) -> PlanFile:
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise UsageError(
            f"the plan file {path} cannot be read: {error.strerror}",
            "Name a file that exists, or fault kinds such as partition,kill",
        ) from error
    return parse_plan_file(text, _PLAN_FILE_FORMATS[path.suffix])


def _check_numbers(options: TestOptions) -> None:
    rules = (
        (1 <= options.nodes <= NODES_MAX, "--nodes", options.nodes, f"between 1 and {NODES_MAX}"),
        (options.concurrency >= 1, "--concurrency", options.concurrency, "at least 1"),
        (options.rate > 0, "--rate", options.rate, "above 0"),
        (options.time_limit_s > 0, "--time-limit", options.time_limit_s, "above 0"),
        (
            options.operation_timeout_s > 0,
            *("--operation-timeout", options.operation_timeout_s, "above 0"),
        ),
        (options.seed >= 0, "--seed", options.seed, "at least 0"),
    )
    for holds, name, value, range_ in rules:
        if not holds:
            raise UsageError(f"{name} cannot be {value:g}", f"Choose a number {range_}")
