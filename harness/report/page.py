"""The report page: gathers the template's data and renders it.

Text from the system under test reaches the page through the template engine's escaping or through
``page_assets`` only. The page needs no other file, and its size is bounded.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec

from splitbrain.checker.anomalies.account import rank_of_result
from splitbrain.checker.anomalies.names import name_of
from splitbrain.checker.verdict import CheckResult, Verdict
from splitbrain.contracts.analysis.run import RunAnalysis
from splitbrain.contracts.explanation import Explanation
from splitbrain.harness.console.plain_text import printable, value_text
from splitbrain.harness.folder.results import Results, leading_sentence
from splitbrain.harness.folder.simulation_record import INVARIANTS
from splitbrain.harness.judge.evidence_loader import RunRecord
from splitbrain.harness.report.chart_data import (
    ChartData,
    ShownReign,
    bands,
    completed_calls,
    latency_series,
    shown_reigns,
    throughput,
)
from splitbrain.harness.report.coverage_tables import HEADER, NOTE, coverage_rows
from splitbrain.harness.report.fault_columns import FAULT_COLUMNS, LEADER_NOTE, hit_a_leader
from splitbrain.harness.report.findings import AnalysisTable, analysis_tables
from splitbrain.harness.report.last_messages import LastMessages, last_messages
from splitbrain.harness.report.message_timeline_section import (
    SCRIPTS,
    STYLES,
    MessageTimeline,
    message_timeline,
    why_no_timeline,
)
from splitbrain.harness.report.node_lines import AROUND_S, LinesAround, NodeLogs
from splitbrain.harness.report.operations_view import SCRIPT, STYLE, operations_view
from splitbrain.harness.report.outcome_words import failures, outcome_table
from splitbrain.harness.report.page_assets import VENDOR, json_for_script, render_page
from splitbrain.harness.report.static_charts import draw_static_charts
from splitbrain.harness.report.violations import (
    Surroundings,
    explaining_overlaps,
    show_violations,
)

_OBSERVATIONS_MAX = 50
_REIGN_ROWS_MAX = 200
_FAULT_ROWS_MAX = 500
_COVERAGE_ROWS_MAX = 200
#: Lines of the nodes' logs around a violation, and around each of the first faults.
_VIOLATION_LINES_MAX = 120
_FAULT_LINES_MAX = 40
_LOGGED_FAULTS_MAX = 30
#: Characters of a cell from which on its end is folded, and those that stay.
_CELL_CHARACTERS_MAX = 140
_CELL_HEAD_CHARACTERS = 90
_NS_PER_MS = 1_000_000
_NS_PER_US = 1_000
_FROM_OUTSIDE = (
    "There are no state events of the nodes: this is who was seen to lead from outside, once a "
    "second. A leader that is cut off and still claims to lead is not shown."
)

#: A hostile history's checker may have figures of any length.
_FIGURE_CHARACTERS_MAX = 1_000


def report_page(
    record: RunRecord, results: Results, analysis: RunAnalysis | None, *, vendor: Path = VENDOR
) -> str:
    """Return the whole page; ``vendor`` is the folder of the chart library."""
    messages = _messages(record, results)
    charts = _chart_data(record)
    checkers = _worst_first(results.checkers)
    view = operations_view(record.operations, checkers, charts.faults, charts.reigns)
    logs = _node_logs(record)
    fault_logs = _fault_logs(results, logs)
    around = Surroundings(
        messages=partial(_last_messages, messages, record),
        lines=lambda moment: logs.around(moment, _VIOLATION_LINES_MAX),
    )
    coverage, uncovered = _coverage(results)
    filters: dict[str, Callable[..., Any]] = {
        "printable": printable,
        # Sentences are whole, for they say why a verdict is trusted.
        "figure": partial(value_text, length_max=_FIGURE_CHARACTERS_MAX),
        "folded": _folded,
    }
    return render_page(
        "report.html.j2",
        filters,
        scripts=[
            "report.js",
            *(SCRIPTS if messages else ()),
            *([SCRIPT] if view else []),
            "page_search.js",
        ],
        styles=[*(STYLES if messages else ()), *([STYLE] if view else [])],
        # A bare history has no times to draw charts of.
        vendor=None if results.bare_history else vendor,
        chart_data=json_for_script(charts),
        operations_view=view,
        operations_view_data=json_for_script(view),
        messages=messages,
        no_messages=None if messages else why_no_timeline(record),
        static_charts=draw_static_charts(
            charts.throughput, charts.faults, charts.reigns, charts.nodes, charts.end_s
        ),
        results=results,
        checkers=checkers,
        drawn_charts=_drawn(charts),
        fault_logs=fault_logs,
        log_notes=logs.notes,
        log_reach_s=f"{AROUND_S:g}",
        sentence=leading_sentence(results),
        plan=record.plan,
        end_s=charts.end_s,
        zoom_targets=_zoom_targets(charts),
        shown_points=sum(len(series.times_s) for series in charts.latency),
        all_points=sum(series.count for series in charts.latency),
        reigns=charts.reigns[:_REIGN_ROWS_MAX],
        faults=results.faults[:_FAULT_ROWS_MAX],
        fault_columns=FAULT_COLUMNS,
        fault_note=LEADER_NOTE if hit_a_leader(results.faults) else None,
        coverage=coverage,
        uncovered=uncovered,
        violations=show_violations(record.operations, checkers, around),
        explanations=_explanations(results),
        observations=_observations(results),
        analysis=analysis_tables(
            analysis, has_logs=record.plan is None or record.plan.declares_committed_logs
        ),
        overlaps=_overlap_note(
            charts.reigns,
            is_from_outside=not record.state_events,
            explains=next(explaining_overlaps(results.checkers), None),
        ),
        outcomes=outcome_table(results),
        failures=list(failures(results)),
    )


def _worst_first(checkers: Iterable[CheckResult]) -> list[CheckResult]:
    """Return the results in the order in which a page tells them; the headline's is the first."""
    verdicts = (Verdict.INVALID, Verdict.UNKNOWN, Verdict.VALID)
    return sorted(
        checkers, key=lambda result: (verdicts.index(result.verdict), rank_of_result(result))
    )


def _drawn(charts: ChartData) -> set[str]:
    """Return the charts that have something in them."""
    return {
        name
        for name, content in (("latency", charts.latency), ("leaders", charts.reigns))
        if content
    }


def _node_logs(record: RunRecord) -> NodeLogs:
    clocks = {
        node: window.kind
        for window in record.windows
        if window.kind.startswith("clock-")
        for node in window.nodes
    }
    started_at = "" if record.plan is None else record.plan.started_at
    return NodeLogs(record.folder, record.node_names, started_at, clocks)


def _fault_logs(results: Results, logs: NodeLogs) -> dict[int, tuple[str, LinesAround]]:
    """Return the lines around the beginning of each of the first faults, by its index."""
    found: dict[int, tuple[str, LinesAround]] = {}
    for fault in results.faults:
        if fault.at_ms is None or len(found) >= _LOGGED_FAULTS_MAX:
            continue
        lines = logs.around(fault.at_ms * _NS_PER_MS, _FAULT_LINES_MAX)
        if lines is not None:
            found[fault.index] = f"{fault.kind} of {', '.join(fault.nodes) or fault.target}", lines
    return found


def _last_messages(
    messages: MessageTimeline | None, record: RunRecord, moment: int
) -> LastMessages | None:
    if messages is None:
        return None
    return last_messages(messages.read, moment // _NS_PER_US, record.node_names)


def _folded(text: str) -> tuple[str, str]:
    """Return a cell's beginning, at a word's end, and what is folded; nothing of a short cell."""
    if len(text) <= _CELL_CHARACTERS_MAX:
        return text, ""
    end = text.rfind(" ", 0, _CELL_HEAD_CHARACTERS) + 1 or _CELL_HEAD_CHARACTERS
    return text[:end], text[end:]


def _explanations(results: Results) -> dict[str, Explanation]:
    """Return the words on each invariant that was violated, by its id."""
    violated = {
        name_of(result.checker, violation)
        for result in results.checkers
        if result.checker == INVARIANTS
        for violation in result.violations
    }
    if not violated:
        return {}
    # Loads every system, which most pages need not.
    from splitbrain.harness.report.explanations import explained

    return {text.name: text for text in explained()["invariant"] if text.name in violated}


def _messages(record: RunRecord, results: Results) -> MessageTimeline | None:
    if results.bare_history:
        return None
    timeline = record.folder.timeline
    messages = message_timeline(timeline, results.checkers, record.node_names)
    if messages is None:
        return None
    cut = [f"{clause}." for clause in record.damage if clause.startswith(f"{timeline.name} ")]
    return msgspec.structs.replace(messages, problems=[*messages.problems, *cut])


def _chart_data(record: RunRecord) -> ChartData:
    calls = completed_calls(record.events)
    end_time = record.end_time
    end_s = max(end_time / 1e9, 1.0)
    return ChartData(
        end_s=round(end_s, 3),
        nodes=[printable(node) for node in record.node_names],
        latency=latency_series(calls),
        throughput=throughput(calls, end_s),
        faults=bands(record.windows),
        reigns=shown_reigns(record.reigns, end_time, from_outside=not record.state_events),
    )


def _zoom_targets(charts: ChartData) -> list[tuple[str, str]]:
    """Return label and ``from to`` in seconds for the choice above the charts."""
    targets = [("the whole run", f"0 {charts.end_s}")]
    for band in charts.faults:
        margin = max(0.5, (band.end_s - band.start_s) * 0.15)
        begin, end = max(0.0, band.start_s - margin), min(charts.end_s, band.end_s + margin)
        targets.append((f"fault {band.index}: {band.label}", f"{begin:.3f} {end:.3f}"))
    return targets


def _observations(results: Results) -> list[tuple[str, str]]:
    # An overlap of leaders in which the system lied is part of that violation, and not harmless.
    told = [*explaining_overlaps(results.checkers)]
    observations = [
        (result.checker, str(observation.get("sentence", observation.get("kind", ""))))
        for result in results.checkers
        for observation in result.observations
        if {"first", "second"} - observation.keys()
        or not any(_same_reigns(observation, overlap) for overlap in told)
    ]
    lengths = [("faults", sentence) for sentence in results.too_short.values()]
    return [*lengths, *observations][:_OBSERVATIONS_MAX]


def _same_reigns(observation: Mapping[str, Any], overlap: Sequence[Mapping[str, Any]]) -> bool:
    return all(observation[name] in overlap for name in ("first", "second"))


def _coverage(results: Results) -> tuple[AnalysisTable | None, list[list[str]]]:
    """Return the fault coverage, and the rows of what no fault met.

    None where there were no faults, or nobody has counted.
    """
    if results.coverage is None or not results.faults:
        return None, []
    rows = coverage_rows(results.coverage, sorted({fault.kind for fault in results.faults}))
    shown = [list(row) for row in rows[:_COVERAGE_ROWS_MAX]]
    table = AnalysisTable(
        "Fault coverage",
        f"{NOTE} The workload was {results.workload}.",
        header=list(HEADER),
        rows=[row for row in shown if set(row[2:]) != {"0"}],
        text_columns=2,
        more=max(0, len(rows) - _COVERAGE_ROWS_MAX),
    )
    return table, [row for row in shown if set(row[2:]) == {"0"}]


def _overlap_note(
    shown: Sequence[ShownReign],
    *,
    is_from_outside: bool,
    explains: Sequence[Mapping[str, Any]] | None,
) -> str | None:
    """Put the lanes into words, for readers who cannot see them.

    ``explains`` are the two reigns of an overlap that is part of a violation.
    """
    if not shown:
        return None
    if is_from_outside:
        return _FROM_OUTSIDE
    if any(reign.clash for reign in shown):
        return "Two nodes led the same epoch: the lanes outlined in red."
    overlapping = sum(
        first.end_s > second.start_s and first.node != second.node
        for first, second in pairwise(shown)
    )
    if overlapping or explains is not None:
        often = "Once" if overlapping <= 1 else f"{overlapping} times"
        if explains is not None:
            older, newer = explains
            return (
                f"{often} two nodes claimed to lead at the same time, in different epochs. In one "
                f"of these times, of {older['node']} in epoch {older['epoch']} and "
                f"{newer['node']} in epoch {newer['epoch']}, the violation above happened."
            )
        return (
            f"{often} two nodes claimed to lead at the same time, in different epochs: harmless "
            "by itself, a leader that is cut off cannot know."
        )
    return "No two nodes claimed to lead at once."
