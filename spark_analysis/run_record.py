"""Record of a run and of its judgement: rows of ``runs``, ``verdicts``, ``coverage``.

Reads ``plan.json`` and ``results.json`` as far as they can be read, and repeats the results.
"""

import datetime as dt
import hashlib
from typing import Any, Final

import msgspec

from splitbrain.contracts.names import system_name
from splitbrain.history.expectation import expects_violation
from splitbrain.history.plan import Plan, decode_plan, flat
from splitbrain.history.run_folder import RunFolder, is_plain_name
from splitbrain.spark_analysis.damage import Damage
from splitbrain.spark_analysis.run_rows import Row, json_text

#: Partition of runs without a readable plan.
UNKNOWN: Final = "unknown"
#: Hex digits of the plan's digest in a run's id, which separate runs of one second and one seed.
_DIGEST_DIGITS: Final = 10
#: Fields of a plan in which a replay differs from what it replays.
_OF_ONE_RUN: Final = (
    *("schema", "run_id", "test", "runtime_versions", "started_at"),
    *("tool_version", "tool_commit", "replay_of", "pinned"),
    # Functions belong to the workload, which is included; older plans have none.
    "functions",
    # The same for what an adapter says of itself.
    *("record_forms", "log_patterns", "system_file", "allowed"),
)
#: Length of a node's or system's name; file systems take 255, thrice as many when escaped.
_NAME_BYTES_MAX: Final = 64


class Judged(msgspec.Struct, frozen=True):
    """Result of one checker in ``results.json``."""

    checker: str
    verdict: str
    reason: str = ""
    figures: dict[str, Any] = {}
    violations: list[dict[str, Any]] = []
    observations: list[dict[str, Any]] = []


class CoverageCell(msgspec.Struct, frozen=True):
    """Coverage of a fault in ``results.json``."""

    kind: str
    role: str
    phase: str
    workload: str
    faults: int
    bitten: int


class Conclusions(msgspec.Struct, frozen=True):
    """Part of ``results.json`` (``harness.folder.results``) that goes into tables."""

    verdict: str
    checkers: list[Judged]
    exit_code: int
    vacuous: list[str] = []
    problems: list[str] = []
    harness_failed: bool = False
    interrupted: bool = False
    elections: int | None = None
    longest_unavailability_ms: int | None = None
    reproduce: str | None = None
    coverage: list[CoverageCell] | None = None

    @property
    def outcome(self) -> str:
        """Return the run's word in the matrix; a violation wins, also over a failed harness."""
        if self.verdict == "invalid":
            return "invalid"
        if self.harness_failed:
            return "failed"
        if self.verdict != "valid" or self.interrupted:
            return "unknown"
        return "vacuous" if self.vacuous else "valid"


class Identity(msgspec.Struct, frozen=True):
    """Identity of a run, even a damaged one."""

    #: Unique over machines, the same wherever the folder lies: the run's name and a digest of its
    #: plan; without a plan, of its place.
    run_id: str
    name: str
    plan: Plan | None
    nodes: tuple[str, ...]
    #: The two partitions.
    system: str
    day: str
    #: Whether its suite expects a violation (``history.expectation``).
    expected: bool = False

    @property
    def started_at(self) -> dt.datetime | None:
        """Time in UTC, None without a plan."""
        return None if self.plan is None else instant(self.plan.started_at)


def identify(folder: RunFolder, damage: Damage) -> Identity:
    """Identify the run in a folder; report a missing or broken plan to ``damage``."""
    root = folder.root.resolve()
    plan: Plan | None = None
    content = str(root).encode()
    try:
        content = folder.plan.read_bytes()
        plan = decode_plan(content)
    except FileNotFoundError:
        damage.add("no-plan", f"{folder.plan.name} is missing.")
    except OSError as error:
        damage.add("plan-unreadable", f"{folder.plan.name} cannot be read ({error.strerror}).")
    except (ValueError, RecursionError) as error:
        damage.add("plan-unreadable", f"{folder.plan.name} is no plan ({error}).")
    digest = hashlib.blake2b(content, digest_size=16).hexdigest()[:_DIGEST_DIGITS]
    if plan is None:
        nodes = tuple(str(node) for node in folder.node_names())
        return Identity(f"{root.name}.{digest}", root.name, None, nodes, UNKNOWN, UNKNOWN)
    started, system = instant(plan.started_at), system_name(plan.experiment.system)
    return Identity(
        run_id=f"{plan.run_id}.{digest}",
        name=plan.run_id,
        plan=plan,
        nodes=tuple(node for node in map(str, plan.nodes) if is_folder_name(node)),
        system=system if is_folder_name(system) else UNKNOWN,
        day=UNKNOWN if started is None else started.date().isoformat(),
        expected=expects_violation(root),
    )


def read_conclusions(folder: RunFolder, damage: Damage) -> Conclusions | None:
    """Read the run's results; None if missing or broken."""
    name = folder.results.name
    try:
        return msgspec.json.decode(folder.results.read_bytes(), type=Conclusions)
    except FileNotFoundError:
        damage.add("no-results", f"{name} is missing: the run was not judged.")
    except OSError as error:
        damage.add("results-unreadable", f"{name} cannot be read ({error.strerror}).")
    except (ValueError, RecursionError) as error:
        damage.add("results-unreadable", f"{name} holds no results ({error}).")
    return None


def verdict_rows(conclusions: Conclusions | None) -> list[Row]:
    """Return rows of ``verdicts``, in the order of the results."""
    return [
        (
            judged.checker,
            judged.verdict,
            judged.reason,
            json_text(judged.figures),
            len(judged.violations),
            json_text(judged.violations),
            len(judged.observations),
            json_text(judged.observations),
        )
        for judged in (conclusions.checkers if conclusions is not None else ())
    ]


def coverage_rows(conclusions: Conclusions | None) -> list[Row]:
    """Return rows of ``coverage``, in the order of the results."""
    rows = (conclusions.coverage if conclusions is not None else None) or ()
    return [msgspec.structs.astuple(cell) for cell in rows]


def run_row(
    identity: Identity,
    conclusions: Conclusions | None,
    damage: Damage,
    *,
    is_open: bool,
    operations: int,
) -> Row:
    """Return the row of ``runs``; made last, when all damage is known."""
    plan = identity.plan
    if plan is None:
        planned: Row = (*(None,) * 5, [], list(identity.nodes), *(None,) * 9)
    else:
        experiment = plan.experiment
        planned = (
            plan.test,
            plan.system_versions.get(system_name(experiment.system)),
            experiment.runtime,
            plan.workload,
            experiment.nemesis,
            list(experiment.bugs),
            list(identity.nodes),
            _column(experiment.seed),
            _column(plan.planned_faults),
            experiment.time_limit_s,
            _column(experiment.concurrency),
            experiment.rate,
            identity.started_at,
            plan.tool_version,
            plan.tool_commit,
            plan.replay_of,
        )
    judged: Row = ("none", None, [], None, [])
    results: Row = (None, None, None)
    if conclusions is not None:
        judged = (
            conclusions.outcome,
            conclusions.verdict,
            conclusions.vacuous,
            _column(conclusions.exit_code),
            conclusions.problems,
        )
        gap_ms = _column(conclusions.longest_unavailability_ms)
        results = (
            _column(conclusions.elections),
            None if gap_ms is None else float(gap_ms),
            conclusions.reproduce,
        )
    state = damage.state(is_open=is_open)
    return (
        identity.name,
        *planned,
        *judged,
        state,
        list(damage.kinds),
        list(damage.sentences),
        operations,
        None if plan is None else plan_digest(plan),
        *results,
        identity.expected,
    )


def plan_digest(plan: Plan) -> str:
    """Return a digest equal for runs of one plan: all that was chosen, and the system's version.

    Names, times, the machine, and the tool are left out: a replay differs in them.
    """
    chosen = flat(plan)
    for name in _OF_ONE_RUN:
        del chosen[name]
    content = msgspec.json.encode(chosen, order="sorted")
    return hashlib.blake2b(content, digest_size=16).hexdigest()[:_DIGEST_DIGITS]


def is_folder_name(name: str) -> bool:
    """Return whether the name can name a folder, which an edited plan does not ensure."""
    fits = 0 < len(name.encode(errors="replace")) <= _NAME_BYTES_MAX
    return fits and is_plain_name(name)


def _column(number: int | None) -> int | None:
    """Return the number if it fits a column: an edited file may hold any."""
    return number if number is not None and -(2**63) <= number < 2**63 else None


def instant(text: str) -> dt.datetime | None:
    """Return a time in UTC; None where the text is none."""
    try:
        time = dt.datetime.fromisoformat(text)
    except ValueError:
        return None
    return time.astimezone(dt.UTC) if time.tzinfo else time.replace(tzinfo=dt.UTC)
