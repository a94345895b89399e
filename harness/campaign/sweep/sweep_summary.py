"""Summary of a sweep in words: failures, counts, rates, and the bound where none failed.

Everything shown comes from the tally; nothing is judged here.
"""

import io
from collections.abc import Iterable, Iterator
from typing import Final

import msgspec
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from splitbrain.contracts.words import counted
from splitbrain.harness.campaign.sweep.options import SimOptions, seed_words
from splitbrain.harness.campaign.sweep.sweep import SweepOrder
from splitbrain.harness.campaign.sweep.sweep_display import failure_line, replay_command
from splitbrain.harness.campaign.sweep.sweep_tally import (
    CONFIDENCE,
    SweepTally,
    bound_of,
    failure_groups,
)
from splitbrain.harness.campaign.sweep.trial import SeedResult
from splitbrain.harness.console.console_lines import write_lines
from splitbrain.harness.console.plain_text import printable
from splitbrain.harness.folder.coverage_cells import CoverageCell
from splitbrain.harness.folder.tool_version import this_tool
from splitbrain.harness.report.coverage_tables import (
    HEADER,
    Rows,
    coverage_rows,
    never_tried,
    workload_rows,
)
from splitbrain.history.reproduce_line import line_of
from splitbrain.history.seeds import seeds_named, seeds_text
from splitbrain.nemesis.sorts import drawn_kinds
from splitbrain.patched.loading import file_name, installed_patches

_US_PER_S = 1_000_000
#: Classes of failures that are listed, and seeds of each; the rest is counted.
_LISTED_MAX = 10
_SEEDS_MAX = 8
#: Below so many seeds a bound says nothing worth saying.
_BOUND_SEEDS_MIN = 10
#: Lines for programs and files are never wrapped.
_PLAIN_WIDTH = 100_000
_STYLES = {"FAILED": "bold white on red", "CLEAN": "bold black on green"}


def sim_line(options: SimOptions, seed: int) -> str:
    """Return the line that runs one seed of a sweep again, on any machine."""
    files = [file_name(patch) for patch in installed_patches()]
    patches = [word for name in files for word in ("--patch", name)]
    return line_of(["splitbrain", *seed_words(options, seed), *patches], this_tool(), files)


class FailedSeed(msgspec.Struct, frozen=True, kw_only=True):
    """A seed that failed."""

    seed: int
    #: Invariant and checkers that found something.
    failed_by: tuple[str, ...]
    sentence: str | None
    #: None: none was kept.
    folder: str | None
    #: The line that makes it again on any machine.
    reproduce: str


class SweepAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """Answer of `splitbrain sim --json` to a sweep."""

    exit_code: int
    made_by: str
    system: str
    #: As on the command line; None: worlds of all traits.
    seeds: str
    world: str | None
    #: Seeds whose worlds have other traits.
    skipped: int
    done: int
    undecided: int
    not_run: int
    #: Whether the time limit is why seeds were not run.
    out_of_time: bool
    failures: tuple[FailedSeed, ...]
    #: Seeds that could not be run, and those that came out differently when they were run twice.
    crashed: tuple[int, ...]
    differed: tuple[int, ...]
    #: Finder, or undecided checker, to its number of seeds.
    found_by: dict[str, int]
    unknown_by: dict[str, int]


def sweep_answer(tally: SweepTally, order: SweepOrder, *, is_whole: bool) -> SweepAnswer:
    """Return the summary of a sweep as data."""
    options = order.options
    return SweepAnswer(
        exit_code=tally.exit_code(is_whole=is_whole),
        made_by=this_tool(),
        system=options.system,
        seeds=seeds_text(order.seeds),
        world=options.world,
        skipped=tally.skipped,
        done=tally.done,
        undecided=tally.undecided,
        not_run=_not_run(tally, order),
        out_of_time=bool(time_words(tally, order)),
        failures=tuple(
            FailedSeed(
                seed=failure.seed,
                failed_by=failure.failed_by,
                sentence=failure.sentence,
                folder=tally.folders.get(failure.seed),
                reproduce=sim_line(options, failure.seed),
            )
            for failure in sorted(tally.failures, key=lambda failure: failure.seed)
        ),
        crashed=tuple(crash.seed for crash in tally.crashes),
        differed=tuple(mismatch.seed for mismatch in tally.mismatches),
        found_by=dict(tally.found_by),
        unknown_by=dict(tally.unknown_by),
    )


def show_summary(
    tally: SweepTally, order: SweepOrder, console: Console, elapsed_s: float, *, interrupted: bool
) -> None:
    """Print the summary of a sweep; the verdict stands last."""
    if console.is_terminal:
        _render(tally, order, console, elapsed_s, interrupted=interrupted)
        return
    text = summary_text(tally, order, elapsed_s, interrupted=interrupted)
    write_lines(console, text.splitlines())


def summary_text(
    tally: SweepTally, order: SweepOrder, elapsed_s: float, *, interrupted: bool
) -> str:
    """Return the summary for programs and files: neither wrapped nor filled up with blanks."""
    drawn = io.StringIO()
    plain = Console(file=drawn, width=_PLAIN_WIDTH, color_system=None)
    _render(tally, order, plain, elapsed_s, interrupted=interrupted)
    return "\n".join(line.rstrip() for line in drawn.getvalue().splitlines())


def _not_run(tally: SweepTally, order: SweepOrder) -> int:
    return len(order.seeds) - tally.tried - tally.skipped


def time_words(tally: SweepTally, order: SweepOrder) -> str:
    """Return the sentence on seeds left by the time limit; empty where it left none."""
    left = _not_run(tally, order)
    if not left or not tally.is_out_of_time:
        return ""
    rest = seeds_text(range(tally.first_untried, order.seeds.stop))
    limit = f"{order.options.time_limit_s:g} s"
    return f"The time limit of {limit} ended the sweep: {left:,} not run (--seeds {rest})."


def verdict_words(tally: SweepTally, order: SweepOrder, *, interrupted: bool) -> tuple[str, str]:
    """Return the headline and its sentences; they follow the exit code."""
    timed = time_words(tally, order)
    left = 0 if timed else _not_run(tally, order)
    headline, sentence = _seeds_words(tally, order, left, interrupted=interrupted)
    return headline, f"{sentence} {timed}".rstrip()


def _seeds_words(
    tally: SweepTally, order: SweepOrder, left: int, *, interrupted: bool
) -> tuple[str, str]:
    """Return headline and sentence on the seeds; ``left`` of them no time limit explains."""
    world = order.options.world
    seeds = counted(tally.done, "seed") + (f" with {world}" if world else "")
    if tally.failed:
        not_run = f", {left:,} not run" if left > 0 else ""
        return "FAILED", f"{tally.failed:,} of {seeds} failed{not_run}."
    if tally.crashes or tally.mismatches:
        return "HARNESS FAILED", f"Nothing failed in {seeds}, but what is told above comes first."
    if left > 0:
        not_run = f"{left:,} not run, the first of them seed {tally.first_untried}"
        return "INTERRUPTED", f"No alarm in {seeds}; {not_run}."
    if interrupted:
        return "INTERRUPTED", f"No alarm in {seeds}; some second runs were not made."
    if not tally.tried:
        is_all = tally.skipped == len(order.seeds)
        none = f"No world of {seeds_named(order.seeds)} has {world}."
        return "UNKNOWN", none if is_all else "Not one seed was tried."
    decided = tally.done - tally.undecided
    if tally.undecided:
        return "UNKNOWN", f"No alarm in {seeds}, {tally.undecided:,} of them undecided."
    bound = ""
    if len(order.seeds) == 1:
        return (
            "CLEAN",
            f"no alarm in {seeds} of {this_tool()}; another version draws another world.",
        )
    if decided >= _BOUND_SEEDS_MIN:
        such = "such seeds" if world else "seeds"
        bound = f": at {CONFIDENCE:.0%} confidence fewer than 1 in {bound_of(decided):,} {such}"
    return "CLEAN", f"no alarm in {seeds}{bound}."


def _render(
    tally: SweepTally, order: SweepOrder, console: Console, elapsed_s: float, *, interrupted: bool
) -> None:
    console.print()
    for name, table in (
        ("Summary", _figures(tally, order, elapsed_s)),
        ("Found by", _table(_found_rows(tally))),
        ("Undecided by", _table(_undecided_rows(tally))),
    ):
        if table.row_count:
            console.print(Text(name, style="bold"))
            console.print(Padding(table, (0, 0, 1, 2)))
    options = order.options
    if options.coverage:
        for block in _coverage_blocks(tally.coverage, beyond_promise=options.beyond_promise):
            console.print(block, soft_wrap=isinstance(block, Text))
        console.print()
    if tally.failures:
        _show_failures(tally, options, console)
    for sentence in _problems(tally, options):
        console.print(Text(printable(sentence), style="yellow"), soft_wrap=True)
    headline, sentence = verdict_words(tally, order, interrupted=interrupted)
    style = _STYLES.get(headline, "bold black on yellow")
    console.print(Text.assemble((f" {headline} ", style), " ", sentence), soft_wrap=True)


def _show_failures(tally: SweepTally, options: SimOptions, console: Console) -> None:
    console.print(Text("Failures", style="bold"))
    groups = failure_groups(tally.failures)
    for group in groups[:_LISTED_MAX]:
        _show_group(group, tally, options, console)
    if len(groups) > _LISTED_MAX:
        others = sum(len(group) for group in groups[_LISTED_MAX:])
        kinds = counted(len(groups) - _LISTED_MAX, "more kind")
        console.print(Text(f"  and {kinds} of failures, of {counted(others, 'seed')}"))
    without = [failure.seed for failure in tally.failures if failure.seed not in tally.folders]
    hints: list[str] = []
    if tally.folders and without:
        count = counted(len(without), "failure")
        hints.append(f"  {count} without a run folder (--keep), the first of them:")
        hints.append(f"    {sim_line(options, min(without))}")
    if tally.folders:
        hints.append(
            "  `splitbrain check FOLDER` makes the report, `splitbrain replay FOLDER --trace` "
            "tells the story, `splitbrain shrink FOLDER` makes the run small."
        )
    violations = (group[0].violation for group in groups[:_LISTED_MAX])
    violated = dict.fromkeys(found.invariant for found in violations if found is not None)
    if violated:
        commands = ", ".join(f"`splitbrain explain {name}`" for name in violated)
        hints.append(f"  {commands}: the rule, why it matters, and how it breaks.")
    for hint in hints:
        console.print(Text(hint, style="dim"), soft_wrap=True)
    console.print()


def _show_group(
    group: list[SeedResult], tally: SweepTally, options: SimOptions, console: Console
) -> None:
    """Print failures of one class: one of them, their number, and their seeds."""
    failure = next((result for result in group if result.seed in tally.folders), group[0])
    console.print(Text("  ").append_text(failure_line(failure, len(group))), soft_wrap=True)
    if len(group) > 1:
        more = len(group) - _SEEDS_MAX
        seeds = ", ".join(str(result.seed) for result in group[:_SEEDS_MAX])
        others = f" and {more:,} more" if more > 0 else ""
        this = "" if failure is group[0] else f"; this is seed {failure.seed}"
        console.print(Text(f"    seeds {seeds}{others}{this}"), soft_wrap=True)
    folder = tally.folders.get(failure.seed)
    again = [] if folder is None else [replay_command(folder)]
    for line in (*again, sim_line(options, failure.seed)):
        console.print(Text(f"    {printable(line)}", style="dim"), soft_wrap=True)


def _problems(tally: SweepTally, options: SimOptions) -> list[str]:
    sentences = [mismatch.sentence for mismatch in tally.mismatches]
    # The crashes after the first are most often the same.
    for crash in tally.crashes[:1]:
        sentences.append(f"Seed {crash.seed} could not be run:")
        sentences.append(sim_line(options, crash.seed))
        sentences += (crash.crash or "").rstrip().splitlines()
    if more := ", ".join(str(crash.seed) for crash in tally.crashes[1:]):
        sentences.append(f"Nor could these seeds: {more}.")
    return sentences


#: Words for figures whose names tell too little.
_WORDS: Final = {
    "believed_lies": "undetectable disk damage",
    "cuts": "log prefixes removed",
    "installed": "snapshots installed",
    "lives": "process starts",
    "resets": "connections reset",
    "votes": "votes granted",
}


def _figures(tally: SweepTally, order: SweepOrder, elapsed_s: float) -> Table:
    simulated_s = tally.virtual_us / _US_PER_S
    elapsed_s = max(elapsed_s, 1e-3)
    speed = simulated_s / elapsed_s
    seeds = f"{len(order.seeds):,}"
    if order.options.world:
        seeds += f", {tally.skipped:,} skipped"
    rows = [
        ("seeds", f"{tally.done:,} of {seeds}, {tally.checked:,} run twice and equal"),
        ("wall time", f"{elapsed_s:,.1f} s, {60 * tally.done / elapsed_s:,.0f} seeds a minute"),
        ("simulated time", f"{simulated_s:,.0f} s, {speed:,.0f}x real time"),
        ("steps", f"{tally.steps:,}, {tally.steps / elapsed_s:,.0f} a second"),
    ]
    if faults := sum(cell.faults for cell in tally.coverage):
        bitten = sum(cell.bitten for cell in tally.coverage)
        counts = f"{faults:,}, one for each role that was met; {bitten:,} took effect (--coverage)"
        rows.append(("faults by role", counts))
    figures = tally.figures.items()
    rows += [(_WORDS.get(name, name.replace("_", " ")), f"{count:,}") for name, count in figures]
    return _table(rows)


def _found_rows(tally: SweepTally) -> Iterator[tuple[str, str]]:
    for name, count in _ranked(tally.found_by):
        yield name, f"{count:,} of {tally.failed:,}"


def _undecided_rows(tally: SweepTally) -> Iterator[tuple[str, str]]:
    for name, count in _ranked(tally.unknown_by):
        seed, reason = tally.unknown_first[name]
        yield name, f"{count:,}; seed {seed}: {reason}"


def _ranked(counts: "dict[str, int]") -> list[tuple[str, int]]:
    return sorted(counts.items(), key=lambda item: (-item[1], item[0]))


def _table(rows: Iterable[tuple[str, str]]) -> Table:
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in rows:
        table.add_row(Text(printable(name)), Text(printable(value)))
    return table


def _coverage_blocks(
    cells: tuple[CoverageCell, ...], *, beyond_promise: bool
) -> list[Text | Padding]:
    """Return a title, the gaps, and two tables; see ``docs/faults/coverage.md``."""
    untried = never_tried(cells, drawn_kinds(beyond_promise=beyond_promise))
    blocks: list[Text | Padding] = [Text("Fault coverage", style="bold")]
    blocks += [Text(printable(f"  Never tried {line}")) for line in untried]
    if cells:
        by_role = _coverage_table([HEADER, *coverage_rows(cells, ())], 2)
        by_workload = _coverage_table(workload_rows(cells, ()), 1)
        blocks += [Padding(table, (1, 0, 0, 2)) for table in (by_role, by_workload)]
    return blocks


def _coverage_table(rows: Rows, text_columns: int) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for place, name in enumerate(rows[0]):
        table.add_column(name, justify="left" if place < text_columns else "right", no_wrap=True)
    for row in rows[1:]:
        table.add_row(*(Text(printable(text)) for text in row))
    return table
