"""Outcomes of the operations, as rows and sentences: for the terminal, Markdown and the page."""

from collections.abc import Iterable

from splitbrain.contracts.words import counted
from splitbrain.harness.folder.results import CLIENT_OVERDUE, OVERDUE_HINT, Results

#: Column of the compare-and-sets that found another value than they expected.
_REFUSED = "mismatches"
_ERROR_CLASSES_MAX = 6


def outcome_table(results: Results) -> list[tuple[str, ...]]:
    """Return header and rows; mismatches, ok without a change, have a column if there are any."""
    shown: tuple[str, ...] = ("ok", "fail", "info")
    if any(counts.refused for counts in results.operations.values()):
        shown = ("ok", _REFUSED, "fail", "info")
    rows = [("operation", *shown)]
    for kind, counts in sorted(results.operations.items()):
        figures = {
            "ok": counts.ok,
            _REFUSED: counts.refused,
            "fail": counts.fail,
            "info": counts.info,
        }
        rows.append((kind, *(f"{figures[name]:,}" for name in shown)))
    return rows


def failures(results: Results) -> Iterable[str]:
    """Yield why operations had no success, one sentence per kind and outcome, and a hint."""
    for kind, counts in sorted(results.operations.items()):
        for verb, meaning, number, by_error in (
            ("failed", "certainly did not happen", counts.fail, counts.fail_by_error),
            ("are info", "may have happened or not", counts.info, counts.info_by_error),
        ):
            if not number or not by_error:
                continue
            classes = [f"{count:,} {error}" for error, count in by_error.items()]
            listed = ", ".join(classes[:_ERROR_CLASSES_MAX])
            if (more := len(classes) - _ERROR_CLASSES_MAX) > 0:
                listed += f" and {counted(more, 'more class', 'more classes')}"
            share = f"{100 * number / counts.total:.3g} %"
            yield f"{share} of {kind} operations {verb} ({meaning}): {listed}"
    if any(
        CLIENT_OVERDUE in errors
        for counts in results.operations.values()
        for errors in (counts.fail_by_error, counts.info_by_error)
    ):
        yield f"Of {CLIENT_OVERDUE}: {OVERDUE_HINT}"
