"""Summary of a night in plain text, Markdown and JUnit, and the ledger's sums; from lines alone.

Violations come first, then failures, then why the night is void. It decides nothing, and it never
leaves out a violation or a failure, however many there are.
"""

from collections.abc import Iterable, Sequence

from splitbrain.contracts.words import counted
from splitbrain.harness.campaign.suite.ledger import VERDICTS, RunEnded
from splitbrain.harness.campaign.suite.tally import (
    NO_COMMIT,
    CellTally,
    CommitSum,
    NightTally,
    sum_all_coverage,
    sum_by_commit,
    sum_programs,
)
from splitbrain.harness.console.plain_text import markdown, printable
from splitbrain.harness.report.coverage_tables import (
    HEADER,
    coverage_rows,
    never_tried,
    workload_rows,
)
from splitbrain.harness.report.junit import JunitSuite, document
from splitbrain.nemesis.kinds import machine_kind_names

Rows = list[tuple[str, ...]]

_WHY_VOID = (
    "The valid runs of this night prove nothing: the cause that hid an expected violation would "
    "have hidden others as well. Find out why it was not seen before believing anything else here."
)
_WHY_NOT_LOOKED = (
    "The valid runs of this night prove nothing: no run in which a violation is expected was made, "
    "so nothing shows that one would have been seen."
)
_COVERAGE = "Fault coverage of all nights"
_PROGRAMS = "Programs of all nights"
_CODES = {
    0: "all as expected",
    1: "a violation that nobody expected",
    2: "something proves nothing, or the night is not over",
    3: "the harness or its environment failed, or the night is void",
}


def to_text(
    night: NightTally, all_nights: Sequence[NightTally], *, with_coverage: bool = False
) -> str:
    """Return the summary for a terminal: plain lines, no colour."""
    blocks = [headline(night), _about(night)]
    blocks += [_indented(title, lines) for title, lines in _findings(night)]
    blocks += [_columns(_cell_rows(night)), sums_text(all_nights)]
    if with_coverage:
        blocks.append(coverage_text(all_nights))
    return "\n\n".join([*blocks, _last(night)])


def to_markdown(night: NightTally, all_nights: Sequence[NightTally]) -> str:
    """Return the content of the night's ``summary.md``."""
    blocks = [f"# {markdown(headline(night))}", markdown(_about(night))]
    for title, lines in _findings(night):
        blocks.append(f"## {markdown(title)}")
        blocks.append("\n".join(map(_item, lines)))
    blocks += ["## Cells", _table(_cell_rows(night))]
    blocks += ["## All nights in the ledger", _table(_sum_rows(all_nights))]
    programs = _program_lines(all_nights)
    if programs:
        blocks += [f"## {_PROGRAMS}", "\n".join(map(_item, programs))]
    lines, matrix, by_workload = _coverage(all_nights)
    blocks += [f"## {_COVERAGE}", "\n".join(map(_item, lines))]
    blocks += [_table(rows) for rows in (matrix, by_workload) if rows]
    blocks.append(markdown(_last(night)))
    return "\n\n".join(blocks) + "\n"


def headline(night: NightTally) -> str:
    """Return the most important sentence."""
    name = f"suite {night.began.suite}, night {night.began.night}"
    if night.violations:
        void = ", and the night is void" if night.is_void else ""
        return f"INVALID: {name}: {counted(len(night.violations), 'unexpected violation')}{void}"
    if night.is_void:
        missed = "went unseen" if night.has_looked else "never looked for"
        return f"VOID: {name}: {counted(len(night.toothless), 'expected violation')} {missed}"
    if night.failures:
        return f"HARNESS FAILED: {name}: {counted(len(night.failures), 'run')} failed"
    if night.inconclusive:
        return f"UNKNOWN: {name}: {counted(len(night.inconclusive), 'run')} proved nothing"
    if night.ended is None:
        return f"NOT OVER: {name}: {len(night.runs)} of {night.planned} runs are done"
    if night.uncovered:
        return f"UNKNOWN: {name}: {counted(len(night.uncovered), 'cell')} had no run"
    return f"VALID: {name}: {counted(len(night.runs), 'run')}, all as expected"


def sums_text(nights: Sequence[NightTally]) -> str:
    """Return the sums of all nights, by commit of the tool."""
    if not nights:
        return "The ledger holds no night."
    text = "All nights in the ledger, by commit of splitbrain\n" + _columns(_sum_rows(nights))
    programs = _program_lines(nights)
    return f"{text}\n\n{_indented(_PROGRAMS, programs)}" if programs else text


def coverage_text(nights: Sequence[NightTally]) -> str:
    """Return the fault coverage of all nights; gaps come first."""
    lines, matrix, by_workload = _coverage(nights)
    blocks = [_indented(_COVERAGE, lines)]
    if matrix:
        blocks += [_columns(matrix, text_columns=2), _columns(by_workload)]
    return "\n\n".join(blocks)


def _indented(title: str, lines: Sequence[str]) -> str:
    return "\n".join([title, *(f"  {line}" for line in lines)])


def _coverage(nights: Sequence[NightTally]) -> tuple[list[str], Rows, Rows]:
    """Return sentences, kinds by role and phase, kinds by workload.

    There are no rows where nothing was tried, and a sentence says so.
    """
    coverage = sum_all_coverage(nights)
    more = f" {counted(coverage.unknown, 'more run')} told nothing." if coverage.unknown else ""
    lines = [
        f"Counted over {counted(coverage.known, 'run')} that should be valid.{more}",
        *(f"Never tried {line}" for line in never_tried(coverage.cells, machine_kind_names())),
    ]
    matrix: Rows = []
    by_workload: Rows = []
    if coverage.cells:
        matrix = [HEADER, *coverage_rows(coverage.cells, ())]
        by_workload = workload_rows(coverage.cells, ())
    return [printable(line) for line in lines], _printable(matrix), _printable(by_workload)


def _printable(rows: Rows) -> Rows:
    return [tuple(map(printable, row)) for row in rows]


def _about(night: NightTally) -> str:
    seconds = sum(run.took_s for run in night.runs)
    commits = ", ".join(night.commits) or "none yet"
    commits = "not known" if commits == NO_COMMIT else commits
    text = (
        f"{len(night.runs)} of {counted(night.planned, 'planned run')}, {_time(seconds)} of work, "
        f"night seed {night.began.night_seed}, commit {commits}"
    )
    if len(night.commits) > 1:
        text += " (the tool changed in the midst of the night)"
    if all(cell.planned.expect == "valid" for cell in night.cells):
        text += ". No violation was expected: nothing shows that one would have been seen"
    return f"{text}."


def _findings(night: NightTally) -> Iterable[tuple[str, list[str]]]:
    """Yield everything that needs attention, most serious first."""
    for title, runs in (
        ("Violations that nobody expected", night.violations),
        ("Runs in which the harness or its environment failed", night.failures),
        ("Runs that prove nothing", night.inconclusive),
        ("Expected violations that were not found", night.unseen),
    ):
        if runs:
            yield title, [line for run in runs for line in _run_lines(run)]
    if night.toothless:
        why = _WHY_VOID if night.has_looked else _WHY_NOT_LOOKED
        yield "The night is void", [*map(toothless_sentence, night.toothless), why]
    if night.cut:
        why = "the time budget was used up" if night.ended else "the night is not over"
        if night.ended and night.ended.reason == "replaced":
            why = "another night began instead"
        yield f"Not done, since {why}", list(map(_cut, night.cut))


def _run_lines(run: RunEnded) -> list[str]:
    sentence = run.sentence or f"It came out {run.verdict}, {run.expect} was expected."
    lines = [f"{run.verdict}: {run.cell}, seed {run.seed}: {sentence}", f"  {run.reproduce}"]
    if run.run_folder is not None:
        lines.append(f"  {run.run_folder}")
    return [printable(line) for line in lines]


def _item(line: str) -> str:
    """Return a line as an item of a list; an indented one belongs to the item before it."""
    text = line.lstrip()
    return " " * (len(line) - len(text)) + f"- {markdown(text)}"


def toothless_sentence(cell: CellTally) -> str:
    """Return how often the expected violation of a cell was found, and how often it must be."""
    if not cell.finished:
        return f"{cell.planned.cell}: not run, and at least {cell.planned.at_least} must find it"
    runs = f"{cell.as_expected} of {counted(cell.finished, 'run')}"
    return f"{cell.planned.cell}: found in {runs}, at least {cell.planned.at_least} must be"


def _cut(cell: CellTally) -> str:
    nothing = "" if cell.finished else "; nothing is known of it"
    return f"{cell.planned.cell}: {cell.finished} of {cell.planned.planned} runs{nothing}"


def _cell_rows(night: NightTally) -> Rows:
    rows: Rows = [("cell", "expected", "planned", *VERDICTS, "as expected", "time")]
    for cell in night.cells:
        planned, verdicts = cell.planned, [str(cell.counts[verdict]) for verdict in VERDICTS]
        name, figures = printable(planned.cell), (str(cell.as_expected), _time(cell.seconds))
        rows.append((name, planned.expect, str(planned.planned), *verdicts, *figures))
    return rows


def _sum_rows(nights: Sequence[NightTally]) -> Rows:
    rows: Rows = [
        ("commit", "nights", "void", *VERDICTS, "valid in void nights", "expected found", "time")
    ]
    sums = sum_by_commit(nights)
    rows += [(entry.commit, *_figures([entry])) for entry in sums]
    if len(sums) > 1:
        rows.append(("all", *_figures(sums)))
    return rows


def _program_lines(nights: Sequence[NightTally]) -> list[str]:
    """Return one line per program: how often it ran, and the sums of its last lines."""
    return [
        printable(
            f"{entry.program}: {entry.as_expected} of {counted(entry.runs, 'run')} as expected"
            + "".join(f", {name} {value:,}" for name, value in entry.figures.items())
        )
        for entry in sum_programs(nights)
    ]


def _figures(sums: Sequence[CommitSum]) -> tuple[str, ...]:
    nights = set[str]().union(*(entry.nights for entry in sums))
    void_nights = set[str]().union(*(entry.void_nights for entry in sums))
    counts = [sum(entry.counts[verdict] for entry in sums) for verdict in VERDICTS]
    void_valid = sum(entry.void_valid for entry in sums)
    detected = f"{sum(entry.found for entry in sums)} of {sum(entry.planted for entry in sums)}"
    numbers = map(str, (len(nights), len(void_nights), *counts, void_valid))
    return (*numbers, detected, _time(sum(entry.seconds for entry in sums)))


def _last(night: NightTally) -> str:
    return f"Exit code {night.exit_code}: {_CODES[night.exit_code]}."


def _columns(rows: Rows, text_columns: int = 1) -> str:
    """Return a table for a terminal: text columns to the left, figures to the right."""
    widths = [max(len(row[place]) for row in rows) for place in range(len(rows[0]))]
    return "\n".join(
        "  ".join(
            text.ljust(width) if place < text_columns else text.rjust(width)
            for place, (text, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    )


def _table(rows: Rows) -> str:
    lines = ["| " + " | ".join(markdown(text) for text in row) + " |" for row in rows]
    return "\n".join([lines[0], "|" + " --- |" * len(rows[0]), *lines[1:]])


def _time(seconds: float) -> str:
    if seconds < 60:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60:02} min"


def to_junit(night: NightTally) -> bytes:
    """Return the content of ``junit.xml``: one case per run, one per planted bug's cell.

    An unexpected violation, and a run that proves nothing, is a failure; a failed harness an error.
    A planted bug that went unseen fails its cell's own case.
    """
    suite = JunitSuite(night.began.suite, night.began.night)
    package = f"splitbrain.{night.began.suite}"
    for run in night.runs:
        case = suite.case(f"{package}.{run.matrix}", f"{run.cell}, seed {run.seed}", run.took_s)
        if run.verdict == "failed" or (run.expect == "valid" and run.verdict != "valid"):
            message = run.sentence or run.verdict
            body = "\n".join([message, *run.vacuous, run.reproduce, run.run_folder or ""])
            case.add("error" if run.verdict == "failed" else "failure", run.verdict, message, body)
    for cell in (cell for cell in night.cells if cell.planned.expect == "invalid"):
        case = suite.case(f"{package}.{cell.planned.matrix}", f"{cell.planned.cell}: found")
        if cell in night.toothless:
            runs = f"Found in {cell.as_expected} of {cell.finished} runs"
            message = f"{runs}, at least {cell.planned.at_least} must be: the night is void."
            case.add("failure", "void", message, message)
    for cell in night.uncovered:
        case = suite.case(f"{package}.{cell.planned.matrix}", f"{cell.planned.cell}: covered")
        case.add("failure", "uncovered", "The cell had no run.", "")
    return document([suite])
