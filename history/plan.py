"""The plan record: everything that is needed to run a test again (design, section 5), pure.

``plan.json`` holds one ``Plan``. It is written before the first node starts, so that a dead run can
be judged and repeated too. The faults themselves stand in ``schedule.jsonl``, drawn from the
sub-seed named ``nemesis``.

A sub-seed is derived by *name* from the master seed, so that adding a purpose never shifts the
random stream of another one.
"""

import hashlib
import shlex
from typing import Any, Final

import msgspec

from splitbrain.contracts.names import NodeName, RunId
from splitbrain.contracts.system import ReadsSpeakFor
from splitbrain.history.functions import Function
from splitbrain.history.run_folder import RUN_FOLDER_SCHEMA, is_plain_name

#: Purposes that have a random stream of their own.
SUB_SEED_NAMES = ("workload", "nemesis")
#: How names of plan files end; ``Plan.nemesis`` may be one.
PLAN_FILE_ENDINGS: Final = (".json", ".toml")


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """Content of ``plan.json``."""

    #: Version of the run folder's layout.
    schema: int = RUN_FOLDER_SCHEMA
    run_id: RunId
    #: Name of the test, the folder above the run's own: ``kraft-register``.
    test: str
    system: str
    #: Planted bugs that are switched on, kebab-case.
    bugs: tuple[str, ...] = ()
    #: What stands above the system's log; None where there is no choice.
    state_machine: str | None = None
    #: The system's own settings by the system's own names.
    settings: dict[str, str] = {}
    system_versions: dict[str, str] = {}
    #: Whether the adapter promises state events; the vacuity rules depend on it.
    declares_state_events: bool = False
    declares_committed_logs: bool = True
    #: For whom the system's reads speak; None in plans of earlier versions, which do not say.
    reads_speak_for: ReadsSpeakFor | None = None
    runtime: str
    #: Engine, kernel and image digests.
    runtime_versions: dict[str, str] = {}
    #: Those that vote.
    nodes: tuple[NodeName, ...]
    #: Those besides them.
    observers: tuple[NodeName, ...] = ()
    workload: str
    workload_options: dict[str, Any] = {}
    #: Effects of the workload's functions; empty in the plan of an older version, which knew them
    #: by their names (``history.functions.USUAL``).
    functions: dict[str, Function] = {}
    #: What judges the run: ``linearizability:cas-register``, ``set-full``, ``split-brain``,
    #: ``lost-commits``.
    checkers: tuple[str, ...]
    #: Checkers of the workload that cannot judge this run, each with the reason, a clause.
    checkers_not_run: dict[str, str] = {}
    checker_options: dict[str, Any] = {}
    #: As the user asked: ``partition,kill:leader``, ``none``, a scripted plan or a plan file.
    nemesis: str
    #: Number of faults that were planned, as in ``schedule.jsonl``.
    planned_faults: int = 0
    seed: int
    sub_seeds: dict[str, int]
    #: How long the clients load the system.
    time_limit_s: float
    concurrency: int
    #: Operations per second over all worker slots.
    rate: float
    operation_timeout_s: float
    #: Wall clock at the start, ISO 8601 in UTC; for people only.
    started_at: str
    tool_version: str
    #: Commit of the tool's work tree, None outside one.
    tool_commit: str | None = None
    #: Run folder that this run replays.
    replay_of: str | None = None
    #: Whether the replay hit the recorded nodes instead of resolving the symbolic targets anew.
    pinned: bool = False


#: Load of a run where the user chose nothing; in operations a second and seconds.
CONCURRENCY: Final = 10
RATE: Final = 200.0
OPERATION_TIMEOUT_S: Final = 1.0


class PlanDefaults(msgspec.Struct, frozen=True, kw_only=True):
    """What a version of the tool takes where the user chose nothing."""

    concurrency: int = CONCURRENCY
    rate: float = RATE
    operation_timeout_s: float = OPERATION_TIMEOUT_S
    #: Of the plan's workload.
    workload_options: dict[str, Any]
    #: Of the plan's system.
    state_machine: str | None = None


def sub_seed(master_seed: int, name: str) -> int:
    """The seed of one named purpose, 0 to 2**63 - 1; the same on every machine and version."""
    digest = hashlib.blake2b(f"{master_seed}/{name}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") >> 1


def sub_seeds(master_seed: int) -> dict[str, int]:
    """The sub-seeds of every purpose in ``SUB_SEED_NAMES``."""
    return {name: sub_seed(master_seed, name) for name in SUB_SEED_NAMES}


def encode_plan(plan: Plan) -> bytes:
    """The plan as indented JSON."""
    return msgspec.json.format(msgspec.json.encode(plan), indent=2) + b"\n"


def decode_plan(data: bytes) -> Plan:
    """Read a plan back.

    Raises:
        ValueError: the bytes are no plan, or one of a layout that this version does not know.
    """
    plan = msgspec.json.decode(data, type=Plan)
    if plan.schema != RUN_FOLDER_SCHEMA:
        message = f"the plan has schema {plan.schema}, this version reads {RUN_FOLDER_SCHEMA}"
        raise ValueError(message)
    # Each is the name of a folder below the run's own.
    if not all(map(is_plain_name, (*plan.nodes, *plan.observers))):
        raise ValueError("one of its nodes has a name that leads out of the run folder")
    return plan


def reproduce_command(plan: Plan, defaults: PlanDefaults | None = None) -> str:
    """The command line that runs the plan again, fit for a shell.

    A pinned replay hit nodes that no option of a test can name, so it is replayed again.

    Args:
        plan: what to run again.
        defaults: those of the tool version in the plan; numbers and workload options equal to
            them are left out. Without them everything is named.
    """
    if plan.pinned and plan.replay_of is not None:
        # The replay may have had another runtime than the run that it replayed.
        words = ["splitbrain", "replay", plan.replay_of, "--pinned", "--runtime", plan.runtime]
        return shlex.join(words)
    words = [
        *("splitbrain", "test", "--system", plan.system, "--workload", plan.workload),
        *("--nemesis", plan.nemesis, "--nodes", str(len(plan.nodes))),
        *("--time-limit", _number(plan.time_limit_s), "--seed", str(plan.seed)),
        *("--runtime", plan.runtime),
    ]
    if defaults is None or plan.concurrency != defaults.concurrency:
        words += ["--concurrency", str(plan.concurrency)]
    if defaults is None or plan.rate != defaults.rate:
        words += ["--rate", _number(plan.rate)]
    if defaults is None or plan.operation_timeout_s != defaults.operation_timeout_s:
        words += ["--operation-timeout", _number(plan.operation_timeout_s)]
    for bug in plan.bugs:
        words += ["--bug", bug]
    if plan.state_machine is not None and (
        defaults is None or plan.state_machine != defaults.state_machine
    ):
        words += ["--state-machine", plan.state_machine]
    for name, value in sorted(plan.settings.items()):
        words += ["--setting", f"{name}={value}"]
    usual = {} if defaults is None else defaults.workload_options
    for name, value in sorted(plan.workload_options.items()):
        if name not in usual or usual[name] != value:
            words += ["--workload-option", f"{name}={value}"]
    return " ".join(shlex.quote(word) for word in words)


def _number(value: float) -> str:
    """In short where that is the same number, else with all of its digits."""
    short = f"{value:g}"
    return short if float(short) == value else repr(value)
