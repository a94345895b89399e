"""The page of a night: the gate's verdict, what changed since the last night, and every run.

``index.html`` in the night's folder of answers. Links are relative, so that they hold wherever the
folder of runs is taken as a whole. All that a night leaves is linked from here. Concludes nothing:
verdict, failures and figures are the gate's, outcomes the ledger's.
"""

import os
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Final
from urllib.parse import quote

import msgspec

from splitbrain.contracts.errors import UNREADABLE
from splitbrain.contracts.names import DEFAULT_SYSTEM
from splitbrain.contracts.words import counted
from splitbrain.harness.campaign.gate.baseline import RECORD_NAME, is_void
from splitbrain.harness.campaign.gate.catalogue import FIGURES
from splitbrain.harness.campaign.gate.evaluation import change_for_the_worse
from splitbrain.harness.campaign.gate.record import (
    FailureRecord,
    GateRecord,
    RunRecord,
    decode_record,
)
from splitbrain.harness.campaign.gate.sentences import (
    HEADLINES,
    failure_state,
    failure_title,
    threshold_sentence,
    value_text,
)
from splitbrain.harness.campaign.nightly.metrics import METRICS
from splitbrain.harness.campaign.nightly.record import NightlyRecord
from splitbrain.harness.campaign.suite.ledger import RunEnded
from splitbrain.harness.campaign.suite.night import NightFolder
from splitbrain.harness.campaign.suite.tally import NightTally
from splitbrain.harness.console import plain_text
from splitbrain.harness.console.plain_text import printable
from splitbrain.harness.report.page_assets import render_page

PAGE: Final = "index.html"
#: Words for the outcomes of runs, those that need a look first.
_OUTCOMES: Final = (
    *("invalid", "expected violation missed", "failed", "unknown", "vacuous", "unjudged"),
    *("valid", "expected violation found"),
)
#: The gate's verdicts, and the colours of a page's head.
_COLOURS: Final = {"green": "VALID", "red": "INVALID"}
#: Characters of a sentence; some hold whole states, and the run's own page has all.
_SENTENCE_MAX: Final = 500
_PAGES: Final = ("report.html", "summary.md")


class Link(msgspec.Struct, frozen=True):
    """A link of the page, relative to it."""

    text: str
    href: str


class ShownRun(msgspec.Struct, frozen=True, kw_only=True):
    """One run as the page shows it."""

    number: int
    outcome: str
    title: str
    system: str
    workload: str
    faults: tuple[str, ...]
    took_s: float
    sentence: str
    reproduce: str
    #: Its report and its summary, as far as they are there: of a valid run the former is often not.
    pages: tuple[Link, ...]
    files: tuple[Link, ...]

    @property
    def needs_a_look(self) -> bool:
        """Return whether it is not as it should be."""
        return self.outcome not in _OUTCOMES[-2:]


class Change(msgspec.Struct, frozen=True):
    """A figure that is another one than last night."""

    name: str
    before: str
    now: str
    #: ``12.5% worse``; empty where neither way is better.
    change: str
    worse: bool


class Evening(msgspec.Struct, frozen=True):
    """The last night, beside this one."""

    name: str
    page: Link
    #: Outcome, how many runs last night, how many now; those that neither had are left out.
    outcomes: list[tuple[str, int, int]]
    new: list[FailureRecord]
    gone: list[FailureRecord]
    changes: list[Change]


class Morning(msgspec.Struct, frozen=True, kw_only=True):
    """All that the page is made of."""

    #: Folder of the night's answers, in which the page stands.
    folder: Path
    suite_folder: NightFolder
    ledger: Path
    record: NightlyRecord
    tally: NightTally
    exit_code: int
    sentence: str


def morning_page(morning: Morning) -> str:
    """Return the whole page."""
    gate = gate_in(morning.folder)
    began = morning.tally.began
    known = {} if gate is None else {run.run_folder or run.run: run for run in gate.runs}
    runs = sorted(
        (_shown(run, known, morning) for run in morning.tally.runs),
        key=lambda run: (_OUTCOMES.index(run.outcome), run.number),
    )
    reports = {
        run.run: pages[0]
        for run in known.values()
        if run.run_folder is not None
        if (pages := _pages_of(Path(run.run_folder), morning.folder))
    }
    return render_page(
        "morning.html.j2",
        {
            "printable": printable,
            "told": partial(plain_text.value_text, length_max=_SENTENCE_MAX),
            "counted": counted,
            "failure_title": failure_title,
            "failure_state": failure_state,
            "threshold_sentence": threshold_sentence,
        },
        scripts=["morning.js"],
        styles=["morning.css"],
        vendor=None,
        morning=morning,
        suite=began.suite,
        night=began.night,
        gate=gate,
        headline="NO ANSWER" if gate is None else HEADLINES[gate.verdict],
        colour="UNKNOWN" if gate is None else _COLOURS.get(gate.verdict, "UNKNOWN"),
        thresholds=[] if gate is None else _by_urgency(gate),
        evening=None if gate is None else _evening(gate, morning),
        reports=reports,
        runs=runs,
        choices={
            "verdict": [word for word in _OUTCOMES if any(run.outcome == word for run in runs)],
            "system": sorted({run.system for run in runs}),
            "workload": sorted({run.workload for run in runs}),
            "fault": sorted({fault for run in runs for fault in run.faults}),
        },
        answers=_answers(morning),
    )


def gate_in(folder: Path) -> GateRecord | None:
    """Return the gate's answer on a night; None where there is none."""
    with suppress(OSError, *UNREADABLE):
        return decode_record((folder / RECORD_NAME).read_bytes())
    return None


def _by_urgency(gate: GateRecord) -> list[object]:
    states = ("violated", "unknown", "not-compared", "met")
    return [threshold for state in states for threshold in gate.of_state(state)]


def _evening(gate: GateRecord, morning: Morning) -> Evening | None:
    """Return the last night that proved something; None for a first one."""
    for folder in sorted(morning.folder.parent.glob("*/"), reverse=True):
        if folder.name >= morning.folder.name or (last := gate_in(folder)) is None:
            continue
        if not is_void(last):
            break
    else:
        return None
    then, now = Counter(map(_outcome, last.runs)), Counter(map(_outcome, gate.runs))
    met_then = {failure.fingerprint for failure in last.failures}
    met_now = {failure.fingerprint for failure in gate.failures}
    page = folder / (PAGE if (folder / PAGE).is_file() else RECORD_NAME)
    return Evening(
        folder.name,
        _link(page, morning.folder, folder.name),
        [(word, then[word], now[word]) for word in _OUTCOMES if then[word] or now[word]],
        [failure for failure in gate.failures if failure.fingerprint not in met_then],
        [failure for failure in last.failures if failure.fingerprint not in met_now],
        sorted(_changes(last, gate), key=lambda change: (not change.worse, change.name)),
    )


def _outcome(run: RunRecord) -> str:
    if not run.canary:
        return run.outcome
    return f"expected violation {'missed' if run.canary_missed else 'found'}"


def _changes(last: GateRecord, gate: GateRecord) -> Iterator[Change]:
    for subject, measured in gate.figures.items():
        before, now = last.figures.get(subject), measured.value
        figure = FIGURES.get(subject.partition("{")[0])
        if figure is None or before is None or before.value is None or now is None:
            continue
        then_text, now_text = (value_text(each, figure.unit) for each in (before.value, now))
        if then_text == now_text:
            continue
        worse = change_for_the_worse(figure, now, before.value)
        is_judged = figure.better != "neither"
        how = "" if not is_judged else "worse" if worse > 0 else "better"
        # From zero there is no share.
        share = f"{abs(worse):,.1%} {how}" if how and before.value else how
        yield Change(subject, then_text, now_text, share, worse=is_judged and worse > 0)


def _shown(run: RunEnded, known: dict[str, RunRecord], morning: Morning) -> ShownRun:
    folder = None if run.run_folder is None else Path(run.run_folder)
    by_gate = None if folder is None else known.get(str(folder.resolve()))
    by_gate = by_gate or known.get(f"{run.suite}/{run.night}/{run.number}")
    outcome = run.verdict
    if run.expect == "invalid" and run.verdict != "failed":
        is_missed = not run.as_expected if by_gate is None else by_gate.canary_missed
        outcome = f"expected violation {'missed' if is_missed else 'found'}"
    options = run.options
    return ShownRun(
        number=run.number,
        outcome=outcome,
        title=f"{run.cell}, seed {run.seed}",
        system=by_gate.system if by_gate else str(options.get("system", DEFAULT_SYSTEM)),
        workload=by_gate.workload if by_gate else str(options.get("workload", run.matrix)),
        faults=_faults(run),
        took_s=run.took_s,
        sentence=run.sentence or (by_gate.sentence if by_gate else ""),
        reproduce=run.reproduce,
        pages=() if folder is None else _pages_of(folder, morning.folder),
        files=tuple(_files(_attempts(run, morning), morning.folder)),
    )


def _attempts(run: RunEnded, morning: Morning) -> list[Path]:
    """Return the folders of the attempts at a run, those that died among them."""
    runs = morning.suite_folder.root / "runs"
    return sorted(runs.glob(f"{run.number:04d}-*/attempt-*"))


def _faults(run: RunEnded) -> tuple[str, ...]:
    """Return the kinds and plans that were asked for, and the kinds that were injected."""
    asked = str(run.options.get("nemesis", "")).split(",")
    injected = [cell.kind for cell in run.coverage or ()]
    return tuple(sorted({Path(name.strip()).name for name in (*asked, *injected)} - {""}))


def _link(path: Path, page_folder: Path, text: str) -> Link:
    return Link(text, quote(os.path.relpath(path, page_folder)) + ("/" if path.is_dir() else ""))


def _pages_of(folder: Path, page_folder: Path) -> tuple[Link, ...]:
    """Return the links to a run's report and to its summary, those that are there."""
    there = [folder / name for name in _PAGES if (folder / name).is_file()]
    return tuple(_link(path, page_folder, path.stem) for path in there)


def _files(attempts: Iterable[Path], page_folder: Path) -> Iterator[Link]:
    """Yield links to all files of these attempts; what nodes left is one folder."""
    for attempt in attempts:
        folders = [plan.parent for plan in sorted(attempt.glob("*/*/plan.json"))]
        on_the_way = {attempt / folder.parent.name for folder in folders}
        for place in (attempt, *folders):
            for path in sorted(place.iterdir()):
                is_lock = (path.suffix or path.name).endswith("lock")
                if not is_lock and not path.is_symlink() and path not in on_the_way:
                    yield _link(path, page_folder, path.name)


def _answers(morning: Morning) -> list[tuple[str, list[Link]]]:
    """Return what stands in the night's folders besides its runs, in groups."""
    folder, suite = morning.folder, morning.suite_folder
    groups = {
        "Gate": [path for path in sorted(folder.glob("gate.*")) if path.is_file()],
        "All runs of the lake": sorted((folder / "all-runs").glob("*")),
        "Suite": [suite.summary, suite.junit, suite.record, morning.ledger],
    }
    told = {folder / PAGE, folder / "all-runs", *groups["Gate"]}
    groups["Night"] = sorted({*folder.iterdir(), folder / "nightly.json"} - told)
    # Of the last night alone, beside all of them.
    groups["Night"] += [path for path in (folder.parent / METRICS,) if path.is_file()]
    return [
        (name, [_link(path, folder, path.name) for path in paths])
        for name, paths in groups.items()
        if paths
    ]
