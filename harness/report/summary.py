"""The verdict for people: the table on the terminal and ``summary.md``.

The verdict stands last on the terminal, where the eye is when a command ends, and first in the
Markdown file.
"""

import io
import sys
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path

import msgspec
from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from splitbrain.checker.verdict import ALLOWED, Verdict
from splitbrain.contracts.analysis.run import RunAnalysis
from splitbrain.harness.console.plain_text import markdown, printable
from splitbrain.harness.console.standard_streams import forget_output, write_bytes
from splitbrain.harness.folder.results import FaultResult, Results, leading_sentence
from splitbrain.harness.report.coverage_tables import HEADER, coverage_rows
from splitbrain.harness.report.fault_columns import LEADER_NOTE, SHORT_COLUMNS, hit_a_leader
from splitbrain.harness.report.findings import finding_sentences
from splitbrain.harness.report.outcome_words import failures, outcome_table
from splitbrain.history.identity import stand_in
from splitbrain.history.run_folder import RunFolder

_VERDICT_STYLE = {
    Verdict.VALID: "bold green",
    Verdict.UNKNOWN: "bold yellow",
    Verdict.INVALID: "bold red",
}
_ALLOWED_STYLE = "bold cyan"
_HEADLINE_STYLE = {"VALID": "bold black on green", "INVALID": "bold white on red"}
#: Lines for programs and files are never wrapped.
_PLAIN_WIDTH = 100_000
#: Faults shown on a terminal before the rest is only counted.
_FAULTS_SHOWN_MAX = 40
#: Verdict column of a checker that could not judge the run.
_NOT_RUN = "not run"
_TONE_STYLE = {"soft": "yellow", "doubt": "yellow", "no": "red"}


def show(results: Results, console: Console, *, as_json: bool = False) -> None:
    """Print the summary, or as much of it as can be printed; never raises for its content.

    Where the output is no terminal, lines are neither wrapped nor filled up with blanks: programs
    read them.
    """
    if as_json:
        write_bytes(msgspec.json.encode(results, enc_hook=stand_in) + b"\n")
        return
    try:
        if console.is_terminal:
            render(results, console)
        else:
            _print_plainly(results, console)
    except BrokenPipeError:
        forget_output()
    # The reader stopped reading, or the terminal cannot show the text: the verdict is the last
    # thing that may be lost, so it goes out in plain letters.
    except Exception as error:  # noqa: BLE001
        plain = (
            f"{results.headline} {leading_sentence(results)}\n"
            f"{_place_label(results):<12}{results.run_folder}\n"
            f"(The summary could not be shown: {type(error).__name__}: {error}.)\n"
        )
        sys.stderr.write(plain.encode("ascii", "backslashreplace").decode("ascii"))


def _print_plainly(results: Results, console: Console) -> None:
    drawn = io.StringIO()
    render(results, Console(file=drawn, width=_PLAIN_WIDTH, color_system=None))
    for line in drawn.getvalue().splitlines():
        console.file.write(line.rstrip() + "\n")
    console.file.flush()


def render(results: Results, console: Console) -> None:
    """Print the summary; reads well from 80 columns on."""
    console.print()
    console.print(Text(_title(results), style="bold"))
    _print_block(console, "Operations", _operations_table(results))
    reasons = list(failures(results))
    if reasons:
        _print_block(console, "Operations without success", _sentences_table(reasons))
    if results.faults:
        bitten = sum(fault.verified for fault in results.faults)
        title = f"Faults ({bitten} of {len(results.faults)} took effect)"
        _print_block(console, title, _faults_table(results.faults))
        for sentence in unnoticed(results):
            console.print(Padding(Text(printable(sentence), style="yellow"), (0, 0, 0, 2)))
        if hit_a_leader(results.faults):
            console.print(Padding(Text(LEADER_NOTE, style="dim"), (0, 0, 0, 2)))
    if _cluster_rows(results):
        _print_block(console, "Cluster", _cluster_table(results))
    _print_block(console, "Checkers", _checkers_table(results))
    if results.vacuous:
        _print_block(console, "Vacuous, because", _sentences_table(results.vacuous))
    if results.problems:
        _print_block(console, "Problems", _sentences_table(results.problems))
    console.print()
    # Paths and commands are for copying: never wrapped by us, the terminal may.
    for label, text in _ending(results):
        line = Text.assemble((f"{label:<12}", "dim"), printable(text))
        console.print(line, soft_wrap=True)
    console.print()
    console.print(_headline(results))


def show_headline(results: Results, console: Console) -> None:
    """Print the line on which the summary ends, once more."""
    # A reader who stopped reading has seen it.
    with suppress(OSError, SystemExit):
        console.print(_headline(results), soft_wrap=not console.is_terminal)


def _headline(results: Results) -> Text:
    headline = results.headline
    style = _HEADLINE_STYLE.get(headline, "bold black on yellow")
    return Text.assemble((f" {headline} ", style), " ", printable(leading_sentence(results)))


def _ending(results: Results) -> list[tuple[str, str]]:
    report = RunFolder(Path(results.run_folder)).report
    return [
        (_place_label(results), results.run_folder),
        *([("Report", str(report))] if report.is_file() else []),
        *(("Explain", command) for command in _explaining_commands(results)),
        ("Reproduce", results.reproduce),
    ]


def _explaining_commands(results: Results) -> list[str]:
    if not any(result.violations for result in results.checkers):
        return []
    # A history without a violation is judged before this would be loaded.
    from splitbrain.harness.report.explaining_commands import explaining_commands

    return explaining_commands(results.checkers)


def to_markdown(results: Results, analysis: RunAnalysis | None = None) -> str:
    """Return the content of ``summary.md``; ``analysis`` is that of ``analysis/summary.json``."""
    lines = [
        f"# {results.headline}: {markdown(_title(results))}",
        "",
        markdown(leading_sentence(results)),
        "",
        f"- {_place_label(results)}: `{_code(results.run_folder)}`",
        f"- Reproduce: `{_code(results.reproduce)}`",
        *(f"- Explain: `{_code(command)}`" for command in _explaining_commands(results)),
        f"- Exit code: {results.exit_code}",
    ]
    lines += [f"- {name}: {value}" for name, value in _cluster_rows(results)]
    columns, *rows = outcome_table(results)
    lines += _markdown_table("Operations", columns, rows)
    reasons = list(failures(results))
    if reasons:
        lines += ["", *(f"- {markdown(sentence)}" for sentence in reasons)]
    if results.faults:
        lines += _markdown_table(
            "Faults",
            [column.title for column in SHORT_COLUMNS],
            [[column.text(fault) for column in SHORT_COLUMNS] for fault in results.faults],
        )
        if hit_a_leader(results.faults):
            lines += ["", markdown(LEADER_NOTE)]
        lines += [line for text in unnoticed(results) for line in ("", markdown(text))]
        if results.coverage is not None:
            kinds = sorted({fault.kind for fault in results.faults})
            cells = coverage_rows(results.coverage, kinds)
            lines += _markdown_table("Fault coverage", HEADER, cells)
    lines += _markdown_table(
        "Checkers",
        ("checker", "verdict", "reason"),
        [
            *((result.checker, result.word, result.reason) for result in results.checkers),
            *((name, _NOT_RUN, reason) for name, reason in results.not_run.items()),
        ],
    )
    for title, sentences in (
        ("Analysis by Spark", finding_sentences(analysis)),
        ("Vacuous, because", results.vacuous),
        ("Problems", results.problems),
    ):
        if sentences:
            lines += ["", f"## {title}", "", *(f"- {markdown(text)}" for text in sentences)]
    return "\n".join(lines) + "\n"


def _title(results: Results) -> str:
    seed = "" if results.seed is None else f"seed {results.seed}"
    parts = (results.system, results.workload, seed, results.runtime)
    return printable(f"{results.test}: {', '.join(part for part in parts if part)}")


def _place_label(results: Results) -> str:
    return "History" if results.bare_history else "Run folder"


def _print_block(console: Console, title: str, table: Table) -> None:
    console.print()
    console.print(Text(title, style="bold"))
    console.print(Padding(table, (0, 0, 0, 2)))


def _plain_table(*, header: bool = False) -> Table:
    return Table(
        box=None, show_header=header, header_style="dim", pad_edge=False, padding=(0, 2, 0, 0)
    )


def _operations_table(results: Results) -> Table:
    table = _plain_table(header=True)
    columns, *rows = outcome_table(results)
    for number, column in enumerate(columns):
        table.add_column(column, justify="right" if number else "left")
    for kind, *figures in rows:
        table.add_row(Text(printable(kind)), *figures)
    return table


def _faults_table(faults: Sequence[FaultResult]) -> Table:
    table = _plain_table(header=True)
    for column in SHORT_COLUMNS:
        justify = "right" if column.is_figure else "left"
        table.add_column(column.title, justify=justify, no_wrap=not column.is_wide, overflow="fold")
    for fault in faults[:_FAULTS_SHOWN_MAX]:
        table.add_row(
            *(
                Text(printable(column.text(fault)), _TONE_STYLE.get(column.tone(fault), ""))
                for column in SHORT_COLUMNS
            )
        )
    if len(faults) > _FAULTS_SHOWN_MAX:
        table.add_row("", "", f"and {len(faults) - _FAULTS_SHOWN_MAX} more: see report.html")
    return table


def unnoticed(results: Results) -> list[str]:
    """Return sentences about what took effect and was not noticed, or could not be."""
    silent = [
        f"Fault {fault.index} ({fault.kind}:{fault.target}) took effect, but the system noticed "
        f"nothing: {fault.notice}."
        for fault in results.faults
        if fault.is_unnoticed
    ]
    return [*silent, *results.too_short.values()]


def _cluster_rows(results: Results) -> list[tuple[str, str]]:
    rows: list[tuple[str, str]] = []
    if results.elections is not None:
        seen = ", seen from outside, once a second" if results.elections_from_outside else ""
        count = f"{results.elections:,}{_epoch_range(results.epochs)}{seen}"
        rows.append(("elections", count))
    gap = results.longest_unavailability_ms
    if gap is not None:
        rows.append(("longest unavailability", f"{gap:,} ms without an acknowledged write"))
    if failovers := _failovers(results.faults):
        rows.append(("failover", failovers))
    return rows


def _failovers(faults: Iterable[FaultResult]) -> str | None:
    """Return ``kill:leader 310 ms, 1,204 ms; pause:leader 890 ms``; None where no leader moved."""
    took: dict[str, list[str]] = {}
    for fault in faults:
        if fault.failover_ms is not None:
            took.setdefault(f"{fault.kind}:{fault.target}", []).append(f"{fault.failover_ms:,} ms")
    if not took:
        return None
    by_fault = "; ".join(f"{name} {', '.join(times)}" for name, times in took.items())
    return f"{by_fault}, until a change was acknowledged in a new epoch"


def _epoch_range(epochs: tuple[int, ...]) -> str:
    if not epochs:
        return ""
    return f" (epoch {epochs[0]})" if len(epochs) == 1 else f" (epochs {epochs[0]}-{epochs[-1]})"


def _cluster_table(results: Results) -> Table:
    table = _plain_table()
    table.add_column(style="dim", no_wrap=True)
    table.add_column()
    for name, value in _cluster_rows(results):
        table.add_row(name, value)
    return table


def _checkers_table(results: Results) -> Table:
    table = _plain_table()
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    rows = [
        *(
            (
                result.word,
                _ALLOWED_STYLE if result.word == ALLOWED else _VERDICT_STYLE[result.verdict],
                result.checker,
                result.reason,
            )
            for result in results.checkers
        ),
        *((_NOT_RUN, "yellow", name, reason) for name, reason in results.not_run.items()),
    ]
    for word, style, name, reason in rows:
        table.add_row(Text(word, style=style), Text(printable(name)), Text(printable(reason)))
    return table


def _sentences_table(sentences: Iterable[str]) -> Table:
    table = _plain_table()
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for sentence in sentences:
        table.add_row("-", Text(printable(sentence)))
    return table


def _code(text: str) -> str:
    # A backtick would end the code span; no path or command of ours has one.
    return printable(text).replace("`", "'")


def _markdown_table(title: str, header: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    lines = ["", f"## {title}", "", "| " + " | ".join(header) + " |"]
    lines.append("|" + " --- |" * len(header))
    lines += ["| " + " | ".join(markdown(cell) for cell in row) + " |" for row in rows]
    return lines
