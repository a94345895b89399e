"""A small failing run in a few lines of words: its faults, its operations, what broke. Pure."""

from typing import Final

from contracts.fault import FaultEvent
from contracts.scenario import Fault, Scenario
from harness.plain_text import printable
from harness.results import counted
from harness.simulation.folder import moment
from harness.simulation.judging import sentence_of
from harness.simulation.outcome import JudgedOutcome, SimulationOutcome
from harness.simulation.shrink_steps import calm
from harness.simulation.shrinking import Shrinking, Size
from history.pairing import pair
from history.records import PairedOperation
from nemesis.search import INTERRUPTED

#: Operations that are told one by one.
_OPERATIONS_TOLD_MAX: Final = 20
_NS_PER_MS: Final = 1_000_000
_US_PER_MS: Final = 1_000
#: Parts of a scenario that are worth a word where they are not as by default.
_WEATHER: Final = (
    "network", "disk", "drift_ppm", "through_codec", "segment_bytes", "recovery", "settings",
)  # fmt: skip


def change(before: Size, after: Size) -> str:
    """``faults 11 -> 2, operations 214 -> 6``."""
    return (
        f"faults {before.faults} -> {after.faults}, "
        f"operations {before.operations} -> {after.operations}"
    )


def headline(shrinking: Shrinking, seconds: float) -> str:
    """What the search came to, in one sentence."""
    before, after = shrinking.before, shrinking.after
    if shrinking.cut_short is not None:
        how = f"cut short: {shrinking.cut_short}"
    elif shrinking.is_minimal:
        how = "none of them can go alone"
    else:
        how = "some may still go"
    return (
        f"{change(before, after)}, clients {before.clients} -> {after.clients}, "
        f"nodes {before.nodes} -> {after.nodes}; {how} "
        f"({counted(shrinking.replays, 'replay')}, {seconds:.1f} s)."
    )


def to_be_continued(shrinking: Shrinking, folder: str) -> str | None:
    """How to go on with a search that ended early; None if it did not.

    Args:
        shrinking: what the search came to.
        folder: of the small run, as it is to be named.
    """
    if shrinking.cut_short is None:
        return None
    how = "interrupted" if shrinking.cut_short == INTERRUPTED else "cut short by its limit"
    return f"{how}; run `splitbrain shrink {folder}` again to go on"


def story(judged: JudgedOutcome, operations: int) -> list[str]:
    """Each fault with its moment, each operation, what is unusual, and what broke.

    Args:
        judged: of the small run.
        operations: how many of the clients' operations came before the heal.
    """
    outcome = judged.outcome
    scenario = outcome.scenario
    lines = [_fault_line(fault, outcome) for fault in scenario.faults]
    begun = [one for one in pair(outcome.events) if not one.final][:operations]
    lines += [_operation_line(one, scenario) for one in begun[:_OPERATIONS_TOLD_MAX]]
    if len(begun) > _OPERATIONS_TOLD_MAX:
        lines.append(f"  and {counted(len(begun) - _OPERATIONS_TOLD_MAX, 'more operation')}")
    unusual = unusual_parts(scenario)
    if unusual:
        lines.append(f"  not as by default: {', '.join(unusual)}")
    if scenario.bugs:
        lines.append(f"  planted: {', '.join(scenario.bugs)}")
    lines.append(f"{', '.join(judged.failed_by)}: {sentence_of(judged) or 'no sentence'}")
    return [printable(line) for line in lines]


def unusual_parts(scenario: Scenario) -> list[str]:
    """What of the weather and the settings is not as by default."""
    plain = calm(scenario)
    return [
        name.replace("_", " ")
        for name in _WEATHER
        if getattr(scenario, name) != getattr(plain, name)
    ]


def _fault_line(fault: Fault, outcome: SimulationOutcome) -> str:
    lasting = f" for {fault.duration_us / _US_PER_MS:g} ms" if fault.duration_us else ""
    told = f"  fault {fault.index}: {fault.kind} of {fault.target}, {moment(fault)}{lasting}"
    struck = next(
        (event for event in outcome.faults if event.index == fault.index and event.nodes), None
    )
    return told + ("; it did not strike" if struck is None else _struck(struck))


def _struck(event: FaultEvent) -> str:
    nodes = ", ".join(event.nodes)
    return f"; struck {nodes} at {event.time / _NS_PER_MS:,.1f} ms"


def _operation_line(operation: PairedOperation, scenario: Scenario) -> str:
    slot = operation.process % scenario.load.clients
    key = "" if operation.key is None else f" {operation.key}"
    argument = "" if operation.argument is None else f" {operation.argument}"
    asked = (
        f"  client {slot}: {operation.f}{key}{argument} at {operation.start / _NS_PER_MS:,.1f} ms"
    )
    if operation.type == "ok":
        result = "ok" if operation.result in (None, operation.argument) else f"{operation.result}"
        return f"{asked} -> {result}"
    error = f" ({operation.error})" if operation.error else ""
    return f"{asked} -> {operation.type}{error}"
