"""The plan record: everything that is needed to run a test again (design, section 5), pure.

``plan.json`` holds one ``Plan``, the fields of its experiment among its own. It is written before
the first node starts, so that a dead run can be judged and repeated too. The faults themselves
stand in ``schedule.jsonl``, drawn from the sub-seed named ``nemesis``.

A sub-seed is derived by *name* from the master seed, so that adding a purpose never shifts the
random stream of another one.
"""

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import Any, Final, cast

import msgspec

from splitbrain.contracts.committed import RecordForm
from splitbrain.contracts.experiment import Experiment
from splitbrain.contracts.log_pattern import LogPattern
from splitbrain.contracts.names import NodeName, RunId
from splitbrain.contracts.system import AllowedAnomaly, ReadsSpeakFor
from splitbrain.history.blobs import Blob, pack
from splitbrain.history.functions import Function
from splitbrain.history.options import options_of
from splitbrain.history.reproduce_line import line_of, tool_words
from splitbrain.history.run_folder import RUN_FOLDER_SCHEMA, is_plain_name

#: Fields of the experiment that are named whatever is usual.
ALWAYS_SAID: Final = ("system", "workload", "nemesis", "nodes", "time_limit_s", "seed", "runtime")
#: Those that every plan has.
_ALWAYS_RECORDED: Final = (*ALWAYS_SAID, "concurrency", "rate", "operation_timeout_s")
#: Purposes that have a random stream of their own.
SUB_SEED_NAMES = ("workload", "nemesis")
_DIGEST_SHOWN: Final = len("sha256:") + 16
#: How names of plan files end; ``Plan.nemesis`` may be one.
PLAN_FILE_ENDINGS: Final = (".json", ".toml")


class AppliedPatch(msgspec.Struct, frozen=True, kw_only=True):
    """Change of the nodes' source that was in force: a planted bug, or a file of ``--patch``."""

    #: Name of its file, or of the planted bug.
    name: str
    #: SHA-256 of the text, in hexadecimal digits.
    digest: str
    #: The unified diff, with what stands above it.
    text: str
    is_planted: bool = False


class Noticing(msgspec.Struct, frozen=True):
    """Time after which the system notices nodes that fell silent, and the faults that need it."""

    #: Seconds, by its adapter (``Tempo.notices_s``).
    after_s: float
    #: Kinds of faults that others notice by waiting alone.
    kinds: tuple[str, ...]
    #: Time limit with which the seed draws a fault that lasts so long, of each of these kinds that
    #: the run has, in seconds; None where the planned ones do, or where none are drawn.
    time_limit_s: float | None = None


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """Content of ``plan.json``."""

    #: Version of the run folder's layout.
    schema: int = RUN_FOLDER_SCHEMA
    run_id: RunId
    #: Name of the test, the folder above the run's own: ``kraft-register``.
    test: str
    #: As it was chosen, with what is usual where nothing was.
    experiment: Experiment
    #: ``/path/to/file.py:Class`` where the system came from a file.
    system_file: str | None = None
    #: Content of the plan file that ``nemesis`` names, or that a pinned replay would take.
    plan_file: str | None = None
    system_versions: dict[str, str] = {}
    #: In the order of their application.
    patches: tuple[AppliedPatch, ...] = ()
    #: Whether the adapter promises state events; the vacuity rules depend on it.
    declares_state_events: bool = False
    declares_committed_logs: bool = True
    #: For whom the system's reads speak; None in plans of earlier versions, which do not say.
    reads_speak_for: ReadsSpeakFor | None = None
    #: As the adapter says (``System.record_forms``).
    record_forms: dict[str, RecordForm] = {}
    #: The same (``System.log_patterns``).
    log_patterns: tuple[LogPattern, ...] = ()
    #: Engine, kernel and image digests.
    runtime_versions: dict[str, str] = {}
    #: Those that vote.
    nodes: tuple[NodeName, ...]
    #: Those besides them.
    observers: tuple[NodeName, ...] = ()
    #: Effects of the workload's functions; empty in the plan of an older version, which knew them
    #: by their names (``history.functions.USUAL``).
    functions: dict[str, Function] = {}
    #: Checkers of the run: ``linearizability:cas-register``, ``set-full``, ``split-brain``,
    #: ``lost-commits``.
    checkers: tuple[str, ...]
    #: Checkers of the workload that cannot judge this run, each with the reason, a clause.
    checkers_not_run: dict[str, str] = {}
    #: By checker and option: what it must know of the system besides the evidence.
    checker_options: dict[str, Any] = {}
    #: Anomalies that the system documents (``System.allowed``).
    allowed: tuple[AllowedAnomaly, ...] = ()
    #: None where its adapter does not say how long the system takes to notice a fault.
    noticing: Noticing | None = None
    #: Number of faults that were planned, as in ``schedule.jsonl``.
    planned_faults: int = 0
    sub_seeds: dict[str, int]
    #: Wall clock at the start, ISO 8601 in UTC; for people only.
    started_at: str
    tool_version: str
    #: Commit of the tool's work tree, None outside one.
    tool_commit: str | None = None
    #: Run folder that this run replays.
    replay_of: str | None = None
    #: Whether the replay hit the recorded nodes instead of resolving the symbolic targets anew.
    pinned: bool = False
    #: Test of the user's own whose steps made the run, as pytest names it; None where the plan
    #: alone did.
    driven_by: str | None = None

    @property
    def workload(self) -> str:
        """Return the workload's name, which is settled once there is a plan."""
        return self.experiment.workload or ""


def changed_words(then: Mapping[str, str], now: Mapping[str, str]) -> str | None:
    """Return how versions differ that both times have, in words; None where they do not."""
    changed = [name for name in then if now.get(name, then[name]) != then[name]]
    words = [f"{name} was {_short(then[name])}, now {_short(now[name])}" for name in changed]
    return f"changed since the run: {'; '.join(words)}" if words else None


def _short(version: str) -> str:
    """Return a version as it is, of a digest so much that it can be told from others."""
    return version[:_DIGEST_SHOWN] if version.startswith("sha256:") else version


def sub_seed(master_seed: int, name: str) -> int:
    """The seed of one named purpose, 0 to 2**63 - 1; the same on every machine and version."""
    digest = hashlib.blake2b(f"{master_seed}/{name}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") >> 1


def sub_seeds(master_seed: int) -> dict[str, int]:
    """Return the sub-seeds of every purpose in ``SUB_SEED_NAMES``."""
    return {name: sub_seed(master_seed, name) for name in SUB_SEED_NAMES}


def voters(count: int) -> tuple[NodeName, ...]:
    """Names of the nodes that vote; observers come after them."""
    return tuple(NodeName(f"n{number}") for number in range(1, count + 1))


def flat(plan: Plan) -> dict[str, Any]:
    """Return the content of ``plan.json``, where the experiment's fields stand among the others."""
    content = msgspec.to_builtins(plan)
    # The names of the nodes tell how many there are.
    experiment = content.pop("experiment")
    return {**content, **experiment, "nodes": content["nodes"]}


def encode_plan(plan: Plan) -> bytes:
    """Return the plan as indented JSON."""
    return msgspec.json.format(msgspec.json.encode(flat(plan)), indent=2) + b"\n"


def decode_plan(data: bytes) -> Plan:
    """Read a plan back.

    Raises:
        ValueError: the bytes are no plan, or one of a layout that this version does not know.
    """
    content = msgspec.json.decode(data, type=dict[str, Any])
    plan = msgspec.convert({**content, "experiment": {"system": ""}}, Plan)
    if plan.schema != RUN_FOLDER_SCHEMA:
        message = f"the plan has schema {plan.schema}, this version reads {RUN_FOLDER_SCHEMA}"
        raise ValueError(message)
    # Each is the name of a folder below the run's own.
    if not all(map(is_plain_name, (*plan.nodes, *plan.observers))):
        raise ValueError("one of its nodes has a name that leads out of the run folder")
    missing = next((name for name in _ALWAYS_RECORDED if content.get(name) is None), None)
    if missing is not None:
        raise ValueError(f"Object missing required field `{missing}`")
    experiment = msgspec.convert({**content, "nodes": len(plan.nodes)}, Experiment)
    return msgspec.structs.replace(plan, experiment=experiment)


def reproduce_command(plan: Plan, usual: Experiment | None = None) -> str:
    """Return the command line that runs the plan again on any machine, fit for a shell.

    A plan file travels within the line. A pinned replay of before hit nodes that no option of a
    test can name, so it is replayed again; a run that a test of the user's own has driven is made
    again by that test.

    Args:
        plan: what to run again.
        usual: what the tool version in the plan takes where nothing is chosen; what is equal to it
            is left out, but for ``ALWAYS_SAID``. Without it everything is named.
    """
    experiment = plan.experiment
    if plan.driven_by is not None:
        return reproduce_line(
            plan, ["pytest", plan.driven_by, "--splitbrain-seed", str(experiment.seed)]
        )
    if plan.pinned and plan.replay_of is not None and plan.plan_file is None:
        # The replay may have had another runtime than the run that it replayed.
        replayed = "/".join(PurePath(plan.replay_of).parts[-2:])
        words = ["splitbrain", "replay", replayed, "--pinned", "--runtime", experiment.runtime]
        return reproduce_line(plan, [*words, *code_words(plan)])
    words = ["splitbrain", "test"]
    fields = {field.name: field for field in options_of(Experiment)}
    for name in dict.fromkeys((*ALWAYS_SAID, *fields)):
        value, left_out = getattr(experiment, name), getattr(usual, name, None)
        if isinstance(value, dict):
            chosen, known = cast("tuple[dict[str, Any], dict[str, Any]]", (value, left_out or {}))
            value = {key: chosen[key] for key in sorted(chosen) if chosen[key] != known.get(key)}
        elif name not in ALWAYS_SAID and value == left_out:
            continue
        elif value is False is fields[name].default:
            # The version that made the run may not know the switch.
            continue
        if name == "system":
            value = plan.system_file or value
        if name == "nemesis":
            value = _travelling(plan) or value
        words += fields[name].words(value)
    return reproduce_line(plan, [*words, *_patch_words(plan)])


def reproduce_line(plan: Plan, words: Sequence[str]) -> str:
    """Return a command line that makes the plan's run again, with the version that made it."""
    files = [patch.name for patch in plan.patches if not patch.is_planted]
    is_file = PurePath(plan.experiment.nemesis).suffix in PLAN_FILE_ENDINGS
    if is_file and plan.experiment.nemesis in words:
        files.append(PurePath(plan.experiment.nemesis).name)
    return line_of(words, tool_words(plan.tool_version, plan.tool_commit), files)


def _travelling(plan: Plan) -> str | None:
    """Return the plan's file as a word; None without one, or where that would be too long."""
    if plan.plan_file is None:
        return None
    name = PurePath(plan.experiment.nemesis).name
    name = name if name.endswith(PLAN_FILE_ENDINGS) else "plan.toml"
    made_by = tool_words(plan.tool_version, plan.tool_commit)
    return pack(Blob(name, plan.plan_file, made_by))


def code_words(plan: Plan) -> list[str]:
    """Return the options of a replay that name the user's own code: the system's file, patches."""
    system = [] if plan.system_file is None else ["--system", plan.system_file]
    return [*system, *_patch_words(plan)]


def _patch_words(plan: Plan) -> list[str]:
    given = (patch.name for patch in plan.patches if not patch.is_planted)
    return [word for name in given for word in ("--patch", name)]
