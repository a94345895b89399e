"""Baseline of a gate: other runs, or the JSON of an earlier gate, here or in git.

A reference is, in this order: ``none`` (no baseline, said aloud); ``last``, which stands for what
``find_last`` finds; runs, as on the command line (a folder or a ledger's night), which are measured
anew; a gate's JSON file; ``REF:PATH``, such as ``main:ci/gate.json``, a gate's JSON as git holds it
there.
"""

import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

import msgspec

from splitbrain.checker.fingerprints import fingerprint_of
from splitbrain.contracts.errors import UNREADABLE, HarnessError, UsageError
from splitbrain.contracts.figure import Measured, Subject
from splitbrain.harness.campaign.gate.expressions import parse_subject
from splitbrain.harness.campaign.gate.record import GateRecord, decode_record
from splitbrain.harness.campaign.gate.selection import (
    Selection,
    is_run_source,
    ledger_of,
    select,
)
from splitbrain.harness.campaign.suite.ledger import Ledger
from splitbrain.harness.campaign.suite.tally import nights_of
from splitbrain.history.json_problems import in_words

NONE: Final = "none"
LAST: Final = "last"
#: Folder beside the runs with a folder for each night's answers, by suite.
NIGHTS: Final = "nightly"
RECORD_NAME: Final = "gate.json"
_GIT_TIMEOUT_S = 30.0
_NEXT: Final = (
    "Name a folder of runs, a ledger, a gate's JSON, REF:PATH of one in git, last, or none for none"
)

#: Measures runs; returns figures, and sentences on their gaps.
Measurer = Callable[[Selection], tuple[dict[Subject, Measured], Sequence[str]]]


class Baseline(msgspec.Struct, frozen=True):
    """Figures and failures of an earlier time."""

    reference: str
    figures: dict[Subject, Measured]
    fingerprints: frozenset[str]
    notes: tuple[str, ...] = ()


def read_baseline(reference: str, measure: Measurer) -> Baseline:
    """Read the baseline that a reference names.

    Raises:
        UsageError: it names nothing that is there, or something else.
        HarnessError: it cannot be read.
    """
    if is_run_source(reference):
        return _of_runs(reference, measure)
    path = Path(reference)
    if path.is_file():
        return _of_record(reference, path.read_bytes())
    commit, _, inside = reference.partition(":")
    if commit and inside:
        return _of_record(reference, _from_git(reference))
    raise UsageError(f"there is no baseline {reference}", _NEXT)


def find_last(selection: Selection, output: Path | None) -> str | None:
    """Return what ``last`` stands for: the newest answer of a gate that is not about these runs.

    Looks at the nights beside the sources, of a ledger at those of its suites before the night, and
    at what the gate wrote into ``output`` before. Nights without an answer count where the ledger
    holds their runs. A void one proves nothing and is passed over; None where there is no other.
    """
    own = {run.folder_text or run.name for run in selection.runs}
    sweeps = {sweep.name for sweep in selection.sweeps}
    found: list[tuple[str, str]] = []
    for path in dict.fromkeys(_answers(selection.sources, output)):
        with suppress(OSError, *UNREADABLE):
            record = decode_record(path.read_bytes())
            runs = {run.run_folder or run.run for run in record.runs}
            is_own = (runs, {each.sweep for each in record.sweeps}) == (own, sweeps)
            if not is_own and not is_void(record):
                found.append((record.at, str(path)))
    if found:
        return max(found)[1]
    nights = list(_nights_in_ledgers(selection.sources))
    return max(nights)[1] if nights else None


def is_void(record: GateRecord) -> bool:
    """Return whether a violation that its suite expects was not found."""
    return any(run.canary_missed for run in record.runs)


def _answers(sources: Sequence[str], output: Path | None) -> Iterator[Path]:
    for source in sources:
        ledger = ledger_of(source)
        if ledger is None:
            for place in (Path(source), Path(source).parent):
                yield from place.glob(f"{NIGHTS}/*/*/{RECORD_NAME}")
            continue
        for suite, night in _present(*ledger).items():
            for path in (ledger[0].parent / NIGHTS / suite).glob(f"*/{RECORD_NAME}"):
                if path.parent.name < night:
                    yield path
    if output is not None:
        yield output / RECORD_NAME


def _present(path: Path, wanted: str | None) -> dict[str, str]:
    """Return the night that a ledger stands for, of each suite in it."""
    nights = [tally.began for tally in nights_of(Ledger(path).lines())]
    return {began.suite: began.night for began in nights if wanted in (None, began.night)}


def _nights_in_ledgers(sources: Sequence[str]) -> Iterator[tuple[str, str]]:
    for path, wanted in filter(None, map(ledger_of, sources)):
        present = _present(path, wanted)
        for tally in nights_of(Ledger(path).lines()):
            began = tally.began
            is_earlier = began.night < present.get(began.suite, "")
            if is_earlier and tally.ended is not None and tally.runs and not tally.is_void:
                yield began.at, f"{path}@{began.night}"


def _of_runs(reference: str, measure: Measurer) -> Baseline:
    selection = select([reference])
    if not selection.runs and not selection.sweeps:
        raise UsageError(f"the baseline {reference} holds no run", _NEXT)
    figures, gaps = measure(selection)
    violations = [result for run in selection.with_failed_seeds for result in run.invalid]
    fingerprints = frozenset(each.text for each in map(fingerprint_of, violations) if each)
    return Baseline(reference, figures, fingerprints, tuple(f"Baseline: {gap}" for gap in gaps))


def _of_record(reference: str, content: bytes) -> Baseline:
    try:
        record = decode_record(content)
    except (ValueError, RecursionError) as error:
        reason = in_words(error)
        raise UsageError(f"the baseline {reference} is no gate's JSON: {reason}", _NEXT) from error
    figures: dict[Subject, Measured] = {}
    for text, measured in record.figures.items():
        try:
            figures[parse_subject(text)] = measured
        except UsageError:
            # This version no longer has the figure: a threshold on it was refused already.
            continue
    return Baseline(reference, figures, frozenset(each.fingerprint for each in record.failures))


def _from_git(reference: str) -> bytes:
    try:
        # "--" cannot stand before REF:PATH; a leading dash would be an option.
        done = subprocess.run(
            ["git", "show", "--end-of-options", reference],
            capture_output=True,
            check=False,
            timeout=_GIT_TIMEOUT_S,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        action, next_step = "ask git for the baseline", "Install git, or name a file."
        raise HarnessError(action, reference, str(error), next_step) from error
    if done.returncode != 0:
        output = done.stderr.decode(errors="replace").strip().splitlines() or ["it has none"]
        said = output[-1].removeprefix("fatal: ").rstrip(".")
        raise UsageError(f"there is no baseline {reference}: git says {said!r}", _NEXT)
    return done.stdout
