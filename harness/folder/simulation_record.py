"""``simulation.json``: what only a simulated run knows of itself, in its run folder.

Written and sealed with the evidence. From it a judgement learns which invariant was violated, and a
replay what it must come to again; where it is missing nothing is guessed.
"""

import platform

import msgspec

from splitbrain.checker.verdict import CheckResult, Verdict
from splitbrain.contracts.scenario import Violation
from splitbrain.harness.folder.simulation_outcome import JudgedOutcome, SimulationOutcome
from splitbrain.harness.folder.tool_version import tool_commit, tool_version
from splitbrain.history.json_problems import in_words
from splitbrain.history.reproduce_line import tool_words
from splitbrain.history.run_folder import RunFolder

#: Version of the file's form.
SIMULATION_SCHEMA = 1
#: ``nemesis`` of a plan whose faults stand in its scenario alone.
DRAWN = "scenario"
#: Name under which the invariants stand among the checkers.
INVARIANTS = "invariants"


class SimulationRecord(msgspec.Struct, frozen=True, kw_only=True):
    """Content of ``simulation.json``."""

    schema: int = SIMULATION_SCHEMA
    #: Of everything that happened, 32 hex digits.
    trace_hash: str
    #: Actions of the world, and its clock at the end.
    steps: int
    virtual_us: int
    #: First invariant that did not hold; None: all held.
    violation: Violation | None = None
    #: Finders when the run was made, invariant or checkers; None: nobody had looked.
    failed_by: tuple[str, ...] | None = None
    #: The same in one sentence.
    sentence: str | None = None
    #: Why the nodes did not agree in the end.
    unlike: str | None = None
    #: The first fault by which a disk told its node what no format can detect.
    lie: str | None = None
    figures: dict[str, int] = {}
    #: Why its messages were not kept for the timeline, in one sentence; None: nobody says.
    untold: str | None = None
    #: The run of which this is a smaller one, as ``test/run``.
    shrunk_from: str | None = None
    #: The run in containers to which its schedule is near, as ``test/run``.
    like: str | None = None
    #: Words of `splitbrain` that draw the same world; empty: only its scenario says all of it.
    drawn_by: tuple[str, ...] = ()
    #: Whether no invariant watched.
    unwatched: bool = False
    python: str = ""
    tool_version: str = ""
    tool_commit: str | None = None


def record_of(
    outcome: SimulationOutcome,
    judged: JudgedOutcome | None,
    shrunk_from: str | None = None,
    *,
    untold: str | None = None,
    like: str | None = None,
    drawn_by: tuple[str, ...] = (),
) -> SimulationRecord:
    """Return the record of an outcome, which may have been ``judged`` already."""
    return msgspec.structs.replace(
        msgspec.convert(outcome, SimulationRecord, from_attributes=True),
        failed_by=None if judged is None else judged.failed_by,
        sentence=None if judged is None else judged.sentence,
        untold=untold,
        shrunk_from=shrunk_from,
        like=like,
        drawn_by=drawn_by,
        unwatched=outcome.scenario.unwatched,
        python=platform.python_version(),
        tool_version=tool_version(),
        tool_commit=tool_commit(),
    )


def made_by(record: SimulationRecord) -> str:
    """Return the splitbrain that made the run, as ``this_tool`` returned it there."""
    return tool_words(record.tool_version, record.tool_commit)


def encode_record(record: SimulationRecord) -> bytes:
    """As indented JSON."""
    return msgspec.json.format(msgspec.json.encode(record), indent=2) + b"\n"


def decode_record(content: bytes) -> SimulationRecord:
    """Read it back.

    Raises:
        ValueError: it is none, or one of another version.
    """
    record = msgspec.json.decode(content, type=SimulationRecord)
    if record.schema != SIMULATION_SCHEMA:
        message = f"it has schema {record.schema}, this version reads {SIMULATION_SCHEMA}"
        raise ValueError(message)
    return record


def read_for_judging(folder: RunFolder, problems: list[str]) -> SimulationRecord | None:
    """The record of a run folder; None where there is none, with a sentence if it is broken."""
    try:
        return decode_record(folder.simulation.read_bytes())
    except FileNotFoundError:
        return None
    except (OSError, ValueError, RecursionError) as error:
        problems.append(f"{folder.simulation.name} cannot be read: {in_words(error)}.")
        return None


def invariants_result(record: SimulationRecord | None) -> CheckResult:
    """Return the invariants' verdict as the result of a checker."""
    if record is None:
        reason = "What the invariants said is not known: simulation.json is missing or broken."
        return CheckResult(INVARIANTS, Verdict.UNKNOWN, reason)
    figures = {"steps": record.steps, "virtual-ms": record.virtual_us // 1000, **record.figures}
    violation = record.violation
    if violation is None:
        reason = f"No invariant was violated in {record.steps:,} steps."
        if record.unwatched:
            reason = (
                "No invariant watched, as none watches containers; nothing was raised in "
                f"{record.steps:,} steps."
            )
        if record.lie is not None:
            reason += (
                f" A disk lied beyond what any format can detect ({record.lie}): what was lost or "
                "read stale after that is no finding."
            )
        return CheckResult(INVARIANTS, Verdict.VALID, reason, figures)
    where = "" if violation.node is None else f"at {violation.node} "
    sentence = (
        f"{violation.invariant} was violated {where}{violation.time_us / 1000:,.3f} ms into the "
        f"run, in step {violation.step:,}: {violation.problem.rstrip('.')}."
    )
    found = {
        "kind": violation.invariant,
        "sentence": sentence,
        "node": violation.node,
        "time": violation.time_us * 1000,
        "step": violation.step,
    }
    return CheckResult(INVARIANTS, Verdict.INVALID, sentence, figures, violations=(found,))
