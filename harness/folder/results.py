"""The records of ``results.json`` and the rule that turns them into an exit code.

Summary, JUnit, report and gate are made from these: a field may be added, none may change its
meaning without a new schema number. Source: design, sections 5 (verdicts) and 6 (exit codes).
"""

from collections.abc import Iterable
from pathlib import Path

import msgspec

from splitbrain.checker.anomalies.account import account_of, headline_of, rank_of_result
from splitbrain.checker.verdict import ALLOWED, CheckResult, Verdict
from splitbrain.contracts.words import counted
from splitbrain.harness.folder.atomic_file import write_atomically
from splitbrain.harness.folder.coverage_cells import CoverageCell
from splitbrain.harness.folder.refusals import tell_refusal
from splitbrain.history.identity import stand_in
from splitbrain.history.run_folder import RunFolder

#: Version of ``results.json``.
RESULTS_SCHEMA = 1

EXIT_VALID = 0
EXIT_INVALID = 1
EXIT_UNKNOWN = 2
EXIT_HARNESS_FAILED = 3
#: A violation first, then a failed harness, then unknown, then valid.
_WORST_FIRST = (EXIT_INVALID, EXIT_HARNESS_FAILED, EXIT_UNKNOWN, EXIT_VALID)

#: Name of the checker that judges the nodes' own conduct.
NODE_CHECKER = "node-health"
#: Name of the checker that judges the record itself.
RECORD_CHECKER = "record"
#: Error class of an operation that a client had not ended by a while after its timeout.
CLIENT_OVERDUE = "client-overdue"
#: Cause of that more often than not; a sentence.
OVERDUE_HINT = (
    "All clients run in one event loop, which a blocking call holds up: put a library that blocks "
    "into asyncio.to_thread."
)
#: Characters of a headline; what is longer is cut at the end of a clause.
_HEADLINE_LENGTH_MAX = 120


class OutcomeCounts(msgspec.Struct, frozen=True):
    """How many operations of one kind ended how; final reads are counted like the others."""

    ok: int = 0
    fail: int = 0
    info: int = 0
    #: Of those that are ok: compare-and-sets refused for their precondition, which changed nothing.
    refused: int = 0
    #: Error class to how many of those that are fail, and of those that are info.
    fail_by_error: dict[str, int] = {}
    info_by_error: dict[str, int] = {}

    @property
    def total(self) -> int:
        """All of them."""
        return self.ok + self.fail + self.info


class FaultResult(msgspec.Struct, frozen=True):
    """One scheduled fault and what became of it; times in milliseconds since the run's start."""

    index: int
    kind: str
    #: Symbolic target, as drawn from the seed.
    target: str
    #: Nodes hit; empty where the target did not exist.
    nodes: tuple[str, ...] = ()
    #: Node that led when the target was resolved.
    leader: str | None = None
    #: When the runtime was asked to inject it.
    at_ms: int | None = None
    #: When it was seen from outside to have bitten.
    verified_ms: int | None = None
    #: When the rule was gone and the process running again, seen from outside.
    healed_ms: int | None = None
    #: When application traffic was seen again.
    resumed_ms: int | None = None
    #: Seen from outside to have bitten.
    verified: bool = False
    #: Evidence, in words and figures.
    evidence: str | None = None
    healed: bool = False
    #: Its target existed, so that it could be injected.
    applied: bool = False
    #: From the call to inject to the first change acknowledged in a new epoch, milliseconds; None
    #: where it moved no leader, or where the system gives no positions.
    failover_ms: int | None = None
    #: Whether the system noticed it; None where it did not take effect, or where that cannot be
    #: told.
    noticed: bool | None = None
    #: By what the system noticed it, else why that is not so or not known, in words; None where it
    #: did not take effect, and in results of earlier versions.
    notice: str | None = None

    @property
    def is_unnoticed(self) -> bool:
        """Whether it took effect and nothing in the system showed it: then it proves little."""
        return self.noticed is False


class Results(msgspec.Struct, frozen=True):
    """Everything that was concluded about one run; one JSON object."""

    schema: int
    #: Run id, the name of the run folder; for a bare history the name of its file.
    run: str
    test: str
    system: str
    workload: str
    seed: int | None
    runtime: str
    verdict: Verdict
    #: Why the run proves nothing although no checker complained; empty if it is not vacuous.
    vacuous: tuple[str, ...]
    exit_code: int
    checkers: tuple[CheckResult, ...]
    #: Operation kind to its outcomes.
    operations: dict[str, OutcomeCounts]
    faults: tuple[FaultResult, ...]
    #: Epochs with a leader, the first one included; None where nothing tells.
    elections: int | None
    #: Leader epochs seen, ascending.
    epochs: tuple[int, ...]
    #: Longest time without an acknowledged write while clients were working, whatever the cause.
    longest_unavailability_ms: int | None
    run_folder: str
    #: The command that reproduces the run.
    reproduce: str
    #: Failures around the verdict: analysis, report, healing. One sentence each.
    problems: tuple[str, ...] = ()
    #: The harness or its environment failed, so that valid would be a guess.
    harness_failed: bool = False
    #: The user ended the run or the judging early, so that it cannot be valid.
    interrupted: bool = False
    #: There is no run, only a history; ``run_folder`` is then its file.
    bare_history: bool = False
    #: ``elections`` were not told by the nodes but seen from outside, once a second.
    elections_from_outside: bool = False
    #: Faults by role, epoch phase and workload that they met; None in results of earlier versions.
    coverage: tuple[CoverageCell, ...] | None = None
    #: Checkers of the workload that could not judge the run, each with the reason, a clause. They
    #: change no verdict: a system that cannot show more must be able to be valid.
    not_run: dict[str, str] = {}
    #: Kinds of faults of which none lasted until the system notices one, each with a sentence.
    #: They took effect, and what the system does once it has noticed was not tried.
    too_short: dict[str, str] = {}
    #: Provisional verdict on a history without its broken lines; it proves nothing.
    provisional: Verdict | None = None

    @property
    def is_vacuous(self) -> bool:
        """Whether the run proves nothing."""
        return bool(self.vacuous)

    def with_verdict(self, verdict: Verdict, *, harness_failed: bool) -> "Results":
        """Return the same with this verdict, and the exit code that follows from all of it."""
        failed, vacuous, interrupted = harness_failed, self.is_vacuous, self.interrupted
        code = exit_code(verdict, vacuous=vacuous, harness_failed=failed, interrupted=interrupted)
        return msgspec.structs.replace(self, verdict=verdict, harness_failed=failed, exit_code=code)

    def with_problem(self, problem: str, *, first: bool = False) -> "Results":
        """Return the same with one more problem, said once."""
        others = tuple(known for known in self.problems if known != problem)
        problems = (problem, *others) if first else (*others, problem)
        return msgspec.structs.replace(self, problems=problems)

    @property
    def headline(self) -> str:
        """Word that a person must see first; follows the exit code.

        ``INVALID``, ``HARNESS FAILED``, ``INTERRUPTED``, ``UNKNOWN``, ``VACUOUS`` or ``VALID``.
        """
        if self.verdict is Verdict.INVALID:
            return "INVALID"
        if self.harness_failed:
            return "HARNESS FAILED"
        if self.interrupted:
            return "INTERRUPTED"
        if self.verdict is Verdict.UNKNOWN:
            return "UNKNOWN"
        return "VACUOUS" if self.vacuous else "VALID"


def exit_code(
    verdict: Verdict, *, vacuous: bool, harness_failed: bool, interrupted: bool = False
) -> int:
    """Return the exit code of design section 6: a violation always wins, also over a failed heal.

    A run that the user ended early was judged as far as it went and proves nothing: unknown.
    """
    if verdict is Verdict.INVALID:
        return EXIT_INVALID
    if harness_failed:
        return EXIT_HARNESS_FAILED
    if verdict is Verdict.UNKNOWN or vacuous or interrupted:
        return EXIT_UNKNOWN
    return EXIT_VALID


def _unnoticed(results: Results) -> str:
    count = sum(fault.is_unnoticed for fault in results.faults)
    clauses = [f"{count} unnoticed by the system"] if count else []
    if results.too_short:
        clauses.append(f"no {' or '.join(results.too_short)} long enough to be noticed")
    return f" ({', '.join(clauses)})" if clauses else ""


def first_clauses(sentence: str) -> str:
    """As many whole clauses as fit into a headline; the whole sentence stands with its checker."""
    if len(sentence) <= _HEADLINE_LENGTH_MAX:
        return sentence
    # Before the first colon stands where it was; what it was comes after.
    least = sentence.find(": ") + 1
    ends = [
        place
        for boundary in (": ", "; ", ". ")
        if (place := sentence.rfind(boundary, least, _HEADLINE_LENGTH_MAX)) > 0
    ]
    return sentence[: max(ends)] + "." if ends else sentence


def leading_sentence(results: Results) -> str:
    """Return the sentences that explain the headline; mostly one."""
    headline = results.headline
    if headline == "HARNESS FAILED":
        return results.problems[0] if results.problems else "The harness failed without a reason."
    if headline == "INTERRUPTED":
        return (
            f"Ended early by the user; what there was by then is {results.verdict.value}: "
            f"{counted(_succeeded(results), 'operation')} succeeded."
        )
    if headline in ("INVALID", "UNKNOWN"):
        found = [result for result in results.checkers if result.verdict is results.verdict]
        if headline == "UNKNOWN":
            # A gap in the record is why the others are unknown, or tells more than they do.
            found.sort(key=lambda result: result.checker != RECORD_CHECKER)
        else:
            # A lost write explains the stale reads that another checker found first.
            found.sort(key=rank_of_result)
        if found and found[0].checker == NODE_CHECKER:
            # Its last words, and where they stand, are at the end.
            return found[0].reason
        if found:
            return account_of(found[0]) or first_clauses(headline_of(found[0]))
    if headline == "VACUOUS":
        what = "history" if results.bare_history else "run"
        return f"The {what} proves nothing: {results.vacuous[0]}"
    verified = sum(fault.verified for fault in results.faults)
    faults = (
        "no fault was planned, "
        if not results.faults
        else f"{counted(verified, 'fault')} took effect{_unnoticed(results)}, "
    )
    if results.bare_history:
        # A history does not hold what was done to the system meanwhile.
        faults = ""
    succeeded = counted(_succeeded(results), "operation")
    not_run = f" (not run: {', '.join(results.not_run)})" if results.not_run else ""
    found = f"no checker found a violation{_allowed(results)}"
    return f"{succeeded} succeeded, {faults}{found}{not_run}."


def _allowed(results: Results) -> str:
    kinds = [
        f"{count:,} {kind} in {result.checker}"
        for result in results.checkers
        for kind, count in result.allowed.items()
    ]
    return f" but those that the system documents ({', '.join(kinds)})" if kinds else ""


def _succeeded(results: Results) -> int:
    return sum(counts.ok for counts in results.operations.values())


def write(results: Results, path: Path) -> None:
    """Write ``results.json``, whole or not at all."""
    write_atomically(
        path, msgspec.json.format(msgspec.json.encode(results, enc_hook=stand_in), indent=2)
    )


def read(path: Path) -> Results:
    """Read ``results.json``.

    Raises:
        FileNotFoundError: there is none.
        msgspec.DecodeError: it is not one.
    """
    return msgspec.json.decode(path.read_bytes(), type=Results)


def keep_former(folder: RunFolder) -> Path | None:
    """Copy the results of the last judgement to ``results-N.json`` beside them.

    Returns the copy, an earlier one where it is the same; None where nothing was judged yet.

    Raises:
        HarnessError: the disk refuses.
    """
    try:
        content = folder.results.read_bytes()
    except FileNotFoundError:
        return None
    with tell_refusal("keep the former results", folder.results):
        count = sum(1 for _ in folder.root.glob(folder.formers))
        last = folder.former_results(count)
        if last.is_file() and last.read_bytes() == content:
            return last
        while (path := folder.former_results(count + 1)).exists():
            count += 1
        write_atomically(path, content)
    return path


def worst(codes: Iterable[int]) -> int:
    """Return the exit code of several runs: that of the worst of them."""
    return min(codes, key=_WORST_FIRST.index)


def write_verdict(results: Results, path: Path) -> Results:
    """Write ``results.json``; the results with what went wrong."""
    try:
        write(results, path)
    except OSError as error:
        problem = (
            f"The verdict could not be written to {path}: "
            f"{error.strerror or error}. Make room there, then `splitbrain check` writes it."
        )
        failed = results.with_problem(problem, first=True)
        return failed.with_verdict(failed.verdict, harness_failed=True)
    # A checker may have put into its evidence what JSON cannot hold: the verdict goes without.
    except Exception as error:  # noqa: BLE001
        problem = f"Details were left out of the results: {type(error).__name__}: {error}."
        return write_verdict(_in_words(results).with_problem(problem), path)
    return results


def _in_words(results: Results) -> Results:
    """Return the same with nothing of the checkers' evidence but its sentences."""
    checkers = tuple(
        CheckResult(
            checker=str(result.checker),
            verdict=result.verdict,
            reason=str(result.reason),
            figures={ALLOWED: dict(result.allowed)} if result.allowed else {},
            violations=tuple(
                {"kind": str(found.get("kind")), "sentence": str(found.get("sentence"))}
                for found in result.violations
            ),
        )
        for result in results.checkers
    )
    return msgspec.structs.replace(results, checkers=checkers)
