"""Files that a sweep leaves besides run folders: its answer, JUnit, a summary, and reports.

A clean sweep leaves them too: for a CI server no file is no answer.
"""

from pathlib import Path
from typing import Final

import msgspec

from splitbrain.harness.campaign.sweep.options import SimOptions
from splitbrain.harness.campaign.sweep.sweep import SweepOrder
from splitbrain.harness.campaign.sweep.sweep_summary import (
    FailedSeed,
    SweepAnswer,
    summary_text,
    verdict_words,
)
from splitbrain.harness.campaign.sweep.sweep_tally import SweepTally, failure_class
from splitbrain.harness.console.waiting import During
from splitbrain.harness.folder.atomic_file import write_atomically
from splitbrain.harness.folder.refusals import tell_refusal
from splitbrain.harness.report.junit import JunitSuite, document
from splitbrain.harness.report.publishing import judge_and_publish

#: Names of the files.
ANSWER: Final = "sweep.json"
JUNIT: Final = "junit.xml"
SUMMARY: Final = "summary.md"
_ROOM: Final = "Make room on that disk, or choose another folder with --output."


def make_output_folder(options: SimOptions) -> None:
    """Make the folder before anything is run, so that no sweep is lost for it.

    Raises:
        HarnessError: it cannot be made.
    """
    if options.output is not None:
        with tell_refusal("make the folder of --output", options.output, _ROOM):
            options.output.mkdir(parents=True, exist_ok=True)


def write_output(
    folder: Path,
    tally: SweepTally,
    order: SweepOrder,
    answer: SweepAnswer,
    *,
    elapsed_s: float,
    interrupted: bool,
    during: During,
) -> None:
    """Judge each kept failure, so that it has a report, and write all files.

    Raises:
        HarnessError: the disk refuses.
    """
    if tally.folders:
        with during("judging the failures that were kept"):
            for root in tally.folders.values():
                judge_and_publish(Path(root), analyze=False)
    headline, sentence = verdict_words(tally, order, interrupted=interrupted)
    text = summary_text(tally, order, elapsed_s, interrupted=interrupted)
    files = {
        ANSWER: msgspec.json.format(msgspec.json.encode(answer), indent=2) + b"\n",
        JUNIT: _junit(tally, answer, headline, sentence),
        SUMMARY: f"# {headline}: {sentence}\n\n```\n{text.strip()}\n```\n".encode(),
    }
    for name, content in files.items():
        with tell_refusal("write what the sweep found", folder / name, _ROOM):
            write_atomically(folder / name, content)


def _junit(tally: SweepTally, answer: SweepAnswer, headline: str, sentence: str) -> bytes:
    """Return a case for the seeds, one for each kind of failure, and one for the harness."""
    properties = {
        "seeds": answer.seeds,
        "done": str(answer.done),
        "verdict": headline,
        "made_by": answer.made_by,
    }
    suite = JunitSuite(f"sim-{answer.system}", f"seeds {answer.seeds}", properties)
    class_name = f"splitbrain.sim-{answer.system}"
    kinds = {result.seed: failure_class(result) for result in tally.failures}
    by_kind: dict[object, list[FailedSeed]] = {}
    for failed in answer.failures:
        by_kind.setdefault(kinds[failed.seed], []).append(failed)
    for group in by_kind.values():
        first = group[0]
        found = ", ".join(first.failed_by) or "not run"
        case = suite.case(class_name, f"{found}, seed {first.seed}")
        seeds = ", ".join(str(failed.seed) for failed in group)
        lines = (f"{failed.sentence or ''}\n{failed.reproduce}" for failed in group)
        message = first.sentence or "The seed could not be run."
        case.add("failure", "invalid", message, "\n".join([f"Seeds {seeds}", *lines]))
    case = suite.case(class_name, "seeds without a failure")
    if answer.undecided and not answer.failures:
        case.add("error", "unknown", sentence, sentence)
    elif answer.not_run and not answer.failures:
        case.add("error", "interrupted", sentence, sentence)
    case = suite.case(class_name, "harness")
    broken = [*answer.crashed, *answer.differed]
    if broken:
        message = f"{len(broken)} seeds could not be run, or came out differently the second time"
        case.add("error", "harness", message, ", ".join(map(str, broken)))
    return document([suite])
