"""Baseline of a gate: other runs, or the JSON of an earlier gate, here or in git.

A reference is, in this order: ``none`` (no baseline, said aloud); runs, as on the command line (a
folder or a ledger's night), which are measured anew; a gate's JSON file; ``REF:PATH``, such as
``main:ci/gate.json``, a gate's JSON as git holds it there.
"""

import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

import msgspec

from splitbrain.checker.fingerprints import fingerprint_of
from splitbrain.contracts.errors import HarnessError, UsageError
from splitbrain.contracts.figure import Measured, Subject
from splitbrain.harness.campaign.gate.expressions import parse_subject
from splitbrain.harness.campaign.gate.record import decode_record
from splitbrain.harness.campaign.gate.selection import Selection, is_run_source, select
from splitbrain.history.json_problems import in_words

NONE: Final = "none"
_GIT_TIMEOUT_S = 30.0
_NEXT: Final = (
    "Name a folder of runs, a ledger, a gate's JSON, REF:PATH of one in git, or none for none"
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
        output = done.stderr.decode(errors="replace").strip().splitlines() or ["git has none"]
        raise UsageError(f"there is no baseline {reference}: {output[-1]}", _NEXT)
    return done.stdout
