"""A search and its result in words: sizes, progress, headline, faults and operations. Pure."""

from collections.abc import Callable
from typing import Final

import msgspec

from splitbrain.contracts.fault import US_PER_MS, Fault, Microseconds
from splitbrain.contracts.scenario import Scenario
from splitbrain.contracts.words import counted
from splitbrain.harness.campaign.shrinking.run_oracle import Answer, Try
from splitbrain.harness.console.plain_text import printable
from splitbrain.harness.folder.simulation_outcome import JudgedOutcome, SimulationOutcome
from splitbrain.history.pairing import pair
from splitbrain.history.records import PairedOperation
from splitbrain.history.run_folder import RunFolder
from splitbrain.nemesis.awaiting import sentence
from splitbrain.nemesis.exact_steps import calm
from splitbrain.nemesis.search import INTERRUPTED, Happened, Repetition

#: Operations of a story that are listed.
_OPERATIONS_MAX: Final = 20
_NS_PER_MS: Final = 1_000_000
_US_PER_S: Final = 1_000_000
#: Parts of a scenario that are mentioned where they differ from the default.
_WEATHER: Final = (
    "network", "disk", "drift_ppm", "through_codec", "segment_bytes", "recovery", "settings",
)  # fmt: skip


class Size(msgspec.Struct, frozen=True, kw_only=True):
    """Size of a plan."""

    faults: int
    #: Begun by clients while faults could strike; None where runs differ.
    operations: int | None = None
    load_us: Microseconds
    nodes: int
    clients: int

    @property
    def seconds(self) -> str:
        """Return ``14``."""
        return f"{self.load_us / _US_PER_S:g}"

    @property
    def text(self) -> str:
        """Return ``2 faults, 14 s, 3 nodes, 10 clients``."""
        faults, nodes = counted(self.faults, "fault"), counted(self.nodes, "node")
        return f"{faults}, {self.seconds} s, {nodes}, {counted(self.clients, 'client')}"


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """Result of a search."""

    before: Size
    after: Size
    is_minimal: bool
    #: ``7 plans, 14 runs``.
    tries: str
    #: How often the smallest failed; None where that is certain.
    evidence: str | None = None


class Kept(msgspec.Struct, frozen=True, kw_only=True):
    """The small run, and its report."""

    run: RunFolder
    #: The line that makes it again on any machine.
    reproduce: str
    story: list[str]
    #: Further files, by their kind.
    more: dict[str, str] = {}
    #: Times that it should be replayed.
    times: int = 1
    #: Done after the report: it may be refused.
    last: Callable[[], None] | None = None


def name_of(folder: RunFolder) -> str:
    """Return ``test/run``, without a path of this machine."""
    return f"{folder.root.parent.name}/{folder.root.name}"


def size_of(plan: Scenario, happened: Happened | None = None) -> Size:
    """Return the size of a plan, and of its effects as seen."""
    return Size(
        faults=len(plan.faults),
        operations=None if happened is None else len(happened.performed),
        load_us=plan.load_us,
        nodes=plan.nodes,
        clients=plan.load.clients,
    )


def change(before: Size, after: Size) -> str:
    """Return ``faults 11 -> 2, operations 214 -> 6``."""
    change = f"faults {before.faults} -> {after.faults}"
    if before.operations is None:
        return change
    return f"{change}, operations {before.operations} -> {after.operations}"


def headline(result: Result, cut_short: str | None, seconds: float) -> str:
    """Return what became smaller, how often it failed, and whether anything may still go.

    ``cut_short`` is the reason of an early end, None without one.
    """
    before, after = result.before, result.after
    is_any_left = after.faults or after.operations
    minimal = "none of them can go alone" if is_any_left else "it takes none of them"
    how = minimal if result.is_minimal else "some may still go"
    if cut_short is not None:
        how += f"; cut short: {cut_short}"
    evidence = "" if result.evidence is None else f"; {result.evidence}"
    return (
        f"{change(before, after)}, seconds {before.seconds} -> {after.seconds}, nodes "
        f"{before.nodes} -> {after.nodes}, clients {before.clients} -> {after.clients}; "
        f"{how}{evidence} ({result.tries}, {seconds:,.1f} s)."
    )


def to_be_continued(cut_short: str | None, folder: str) -> str | None:
    """Return how to go on with a search that ended early; None if it did not.

    ``folder`` names the small run.
    """
    if cut_short is None:
        return None
    how = "interrupted" if cut_short == INTERRUPTED else f"cut short, for {cut_short}"
    return f"{how}; `splitbrain shrink {folder}` goes on from here"


def progress_text(answer: Answer, asking: Repetition) -> str:
    """Return the plan that is being run, and how often it has failed so far."""
    made = f"{answer.failed} of {answer.tried} failed so" if answer.tried else "no try yet"
    return f"{_plan_text(answer)}; {made}, {asking.at_least} of {asking.tries} wanted"


def try_text(answer: Answer, made: Try, *, is_same: bool) -> str | None:
    """Return a line on a try that could not be carried out, or that failed otherwise."""
    if made.problem is not None:
        return f"plan {answer.number}: a try could not be carried out: {made.problem}"
    if made.verdict is not None and made.verdict.is_invalid and not is_same:
        return f"plan {answer.number}: a try failed otherwise: {made.verdict.text}"
    return None


def answer_text(answer: Answer) -> str:
    """Return the outcome of a plan."""
    verdict = {True: "fails", False: "does not fail", None: "not settled"}[answer.fails]
    return f"{_plan_text(answer)} {verdict}, {answer.failed} of {answer.tried}"


def _plan_text(answer: Answer) -> str:
    return f"plan {answer.number}: {size_of(answer.plan).text} ({answer.step})"


def fault_lines(plan: Scenario) -> list[str]:
    """Return each remaining fault, one line each."""
    return [printable(_fault_line(fault)) for fault in plan.faults] or ["  no fault is needed"]


def comment_lines(run: str, verdict: str, answer: Answer) -> list[str]:
    """Return the comment above the plan in its file."""
    size, rate = size_of(answer.plan), answer.plan.load.rate
    options = f"--nodes {size.nodes} --time-limit {size.seconds} --concurrency {size.clients}"
    tries = f"{verdict}, in {answer.failed} of {answer.tried} tries"
    return [f"What is left of {run}: {tries}", f"with {options} --rate {rate:g}."]


def story(judged: JudgedOutcome, operations: int) -> list[str]:
    """Return lines on faults, the first ``operations``, unusual settings, and the failure."""
    outcome = judged.outcome
    scenario = outcome.scenario
    lines = [_fault_line(fault) + _effect(fault, outcome) for fault in scenario.faults]
    begun = [operation for operation in pair(outcome.events) if not operation.final][:operations]
    lines += [_operation_line(operation, scenario) for operation in begun[:_OPERATIONS_MAX]]
    if len(begun) > _OPERATIONS_MAX:
        lines.append(f"  and {counted(len(begun) - _OPERATIONS_MAX, 'more operation')}")
    if unusual := unusual_parts(scenario):
        lines.append(f"  not as by default: {', '.join(unusual)}")
    if scenario.bugs:
        lines.append(f"  planted: {', '.join(scenario.bugs)}")
    lines.append(f"{', '.join(judged.failed_by)}: {judged.sentence or 'no sentence'}")
    return [printable(line) for line in lines]


def unusual_parts(scenario: Scenario) -> list[str]:
    """Return names of settings that differ from the default."""
    plain = calm(scenario)
    unusual = [name for name in _WEATHER if getattr(scenario, name) != getattr(plain, name)]
    return [name.replace("_", " ") for name in unusual]


def _fault_line(fault: Fault) -> str:
    lasting = f" for {_ms(fault.duration_us)}" if fault.duration_us else ""
    options = f" {fault.options}" if fault.options else ""
    moment = f"at {_ms(fault.at_us)}"
    if (when := fault.when) is not None:
        earliest = f", from {_ms(fault.at_us)} on" if fault.at_us else ""
        later = f", {_ms(when.delay_us)} later" if when.delay_us else ""
        moment = f"after {sentence(when)}{earliest}{later}"
    return f"  fault {fault.index}: {fault.kind} of {fault.target}{options}, {moment}{lasting}"


def _ms(duration_us: Microseconds) -> str:
    return f"{duration_us / US_PER_MS:g} ms"


def _effect(fault: Fault, outcome: SimulationOutcome) -> str:
    for event in outcome.faults:
        if event.index == fault.index and event.nodes:
            return f"; struck {', '.join(event.nodes)} at {event.time / _NS_PER_MS:,.1f} ms"
    return "; it did not strike"


def _operation_line(operation: PairedOperation, scenario: Scenario) -> str:
    slot = operation.process % scenario.load.clients
    key = "" if operation.key is None else f" {operation.key}"
    argument = "" if operation.argument is None else f" {operation.argument}"
    start = f"{operation.start / _NS_PER_MS:,.1f} ms"
    if operation.type == "ok":
        result = "ok" if operation.result in (None, operation.argument) else f"{operation.result}"
    else:
        error = f" ({operation.error})" if operation.error else ""
        result = f"{operation.type}{error}"
    return f"  client {slot}: {operation.f}{key}{argument} at {start} -> {result}"
