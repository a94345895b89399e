"""Files that a sweep leaves besides run folders: its answer, JUnit, SARIF, a summary, reports.

A clean sweep leaves them too: for a CI server no file is no answer. Each seed has its line as soon
as it has ended (``history.seed_records``).
"""

import contextlib
import datetime as dt
from collections.abc import Callable, Generator, Mapping
from pathlib import Path
from typing import Final

import msgspec

from splitbrain.contracts.words import counted
from splitbrain.harness.campaign.sweep.options import SimOptions
from splitbrain.harness.campaign.sweep.sweep import SweepOrder
from splitbrain.harness.campaign.sweep.sweep_summary import (
    FailedSeed,
    SweepAnswer,
    sim_line,
    summary_text,
    verdict_words,
)
from splitbrain.harness.campaign.sweep.sweep_tally import (
    SweepTally,
    failure_class,
    failure_groups,
)
from splitbrain.harness.campaign.sweep.trial import SeedResult
from splitbrain.harness.console.waiting import During
from splitbrain.harness.folder.atomic_file import write_atomically
from splitbrain.harness.folder.refusals import tell_refusal
from splitbrain.harness.folder.results import EXIT_UNKNOWN, Results
from splitbrain.harness.folder.tool_version import tool_commit, tool_version
from splitbrain.harness.report.alarms import Alarm, alarms_of, file_in_repository
from splitbrain.harness.report.junit import JunitSuite, document
from splitbrain.harness.report.publishing import judge_and_publish
from splitbrain.harness.report.sarif import to_sarif
from splitbrain.history.seed_records import ANSWER, SEEDS, SeedLine, SeedOutcome, SweepLine
from splitbrain.history.seeds import seeds_text
from splitbrain.patched.loading import file_name, installed_patches

#: Names of the files, besides those of ``history.seed_records``.
JUNIT: Final = "junit.xml"
SUMMARY: Final = "summary.md"
SARIF: Final = "results.sarif"
_ROOM: Final = "Make room on that disk, or choose another folder with --output."


def make_output_folder(options: SimOptions) -> None:
    """Make the folder before anything is run, so that no sweep is lost for it.

    Raises:
        HarnessError: it cannot be made.
    """
    if options.output is not None:
        with tell_refusal("make the folder of --output", options.output, _ROOM):
            options.output.mkdir(parents=True, exist_ok=True)


@contextlib.contextmanager
def seeds_written(order: SweepOrder) -> Generator[Callable[[SeedResult], None]]:
    """A context that yields how a result is written; without an output folder it is not.

    Files of an earlier sweep go first: they say nothing of these seeds.

    Raises:
        HarnessError: the disk refuses.
    """
    folder = order.options.output
    if folder is None:
        yield lambda _result: None
        return
    seeds = folder / SEEDS
    with contextlib.ExitStack() as stack:
        with tell_refusal("write the seeds of the sweep", seeds, _ROOM):
            for name in (ANSWER, JUNIT, SUMMARY):
                (folder / name).unlink(missing_ok=True)
            # Unbuffered: a killed sweep keeps all lines but the last.
            file = stack.enter_context(seeds.open("wb", buffering=0))

        def write(record: SweepLine | SeedLine) -> None:
            with tell_refusal("write the seeds of the sweep", seeds, _ROOM):
                file.write(msgspec.json.encode(record) + b"\n")

        def took(result: SeedResult) -> None:
            if result.purpose == "first" and not result.is_skipped:
                write(seed_line(result, order.options))

        write(_sweep_line(order))
        yield took


def _sweep_line(order: SweepOrder) -> SweepLine:
    options = order.options
    return SweepLine(
        system=options.system,
        seeds=seeds_text(order.seeds),
        planned=len(order.seeds),
        world=options.world,
        bugs=options.bugs,
        state_machine=options.state_machine,
        beyond_promise=options.beyond_promise,
        patches=tuple(map(file_name, installed_patches())),
        started_at=dt.datetime.now(dt.UTC).isoformat(timespec="microseconds"),
        tool_version=tool_version(),
        tool_commit=tool_commit(),
    )


def seed_line(result: SeedResult, options: SimOptions) -> SeedLine:
    """Return the line of a seed."""
    outcome: SeedOutcome = "clean"
    if result.crash is not None:
        outcome = "crashed"
    elif result.failed_by:
        outcome = "failed"
    elif result.unknown:
        outcome = "undecided"
    return SeedLine(
        seed=result.seed,
        outcome=outcome,
        workload=result.workload,
        sentence=result.sentence if result.crash is None else result.crash.strip().splitlines()[-1],
        found=result.found,
        reproduce=None if outcome == "clean" else sim_line(options, result.seed),
        failed_by=result.failed_by,
        unknown=result.unknown,
        trace_hash=result.trace_hash,
        steps=result.steps,
        virtual_us=result.virtual_us,
        operations=result.operations,
        faults=sum(cell.faults for cell in result.coverage),
        bitten=sum(cell.bitten for cell in result.coverage),
        figures=result.figures,
        seconds=round(result.seconds, 6),
    )


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
    judged: dict[int, Results] = {}
    if tally.folders:
        with during("judging the failures that were kept"):
            for seed, root in tally.folders.items():
                judged[seed] = judge_and_publish(Path(root), analyze=False)
    headline, sentence = verdict_words(tally, order, interrupted=interrupted)
    alarms, file = alarms_of_sweep(tally, answer, judged), file_in_repository(answer.system)
    files = {
        ANSWER: msgspec.json.format(msgspec.json.encode(answer), indent=2) + b"\n",
        JUNIT: _junit(tally, answer, headline, sentence),
        SARIF: to_sarif(alarms, f"sweep/{order.options.system}", file, answer.exit_code),
        SUMMARY: sweep_markdown(tally, order, elapsed_s, interrupted=interrupted).encode(),
    }
    for name, content in files.items():
        with tell_refusal("write what the sweep found", folder / name, _ROOM):
            write_atomically(folder / name, content)


def sweep_markdown(
    tally: SweepTally, order: SweepOrder, elapsed_s: float, *, interrupted: bool
) -> str:
    """Return the content of ``summary.md``."""
    headline, sentence = verdict_words(tally, order, interrupted=interrupted)
    text = summary_text(tally, order, elapsed_s, interrupted=interrupted)
    return f"# {headline}: {sentence}\n\n```\n{text.strip()}\n```\n"


def alarms_of_sweep(
    tally: SweepTally, answer: SweepAnswer, judged: Mapping[int, Results] = {}
) -> list[Alarm]:
    """Return an alarm for each kind of failure, and one for the harness.

    ``judged`` has the results of seeds that were kept, which know the name of an anomaly.
    """
    lines = {failed.seed: failed.reproduce for failed in answer.failures}
    alarms: list[Alarm] = []
    for group in failure_groups(tally.failures):
        first = next((each for each in group if each.seed in judged), group[0])
        named = alarms_of(judged[first.seed]) if first.seed in judged else []
        found = named[0] if named else Alarm(title="", sentence=first.sentence or "")
        rule = found.rule or next(iter(first.failed_by), "")
        seeds = counted(len(group), "seed")
        changes = {"title": f"{rule}: {seeds}, the first is {group[0].seed}", "rule": rule}
        changes |= {"reproduce": lines[first.seed], "count": len(group)}
        alarms.append(msgspec.structs.replace(found, **changes))
    if broken := (*answer.crashed, *answer.differed):
        text = f"{counted(len(broken), 'seed')} could not be run, or came out differently"
        alarms.append(Alarm(title="harness", sentence=f"{text}: {', '.join(map(str, broken))}."))
    if not alarms and answer.exit_code:
        text = f"{answer.undecided:,} undecided, {answer.not_run:,} not run"
        alarms.append(Alarm(title="sweep", sentence=f"{text}.", level="warning"))
    return alarms


def _junit(tally: SweepTally, answer: SweepAnswer, headline: str, sentence: str) -> bytes:
    """Return a case for the seeds, one for each kind of failure, and one for the harness."""
    properties = {
        "seeds": answer.seeds,
        "done": str(answer.done),
        "not_run": str(answer.not_run),
        "skipped": str(answer.skipped),
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
    is_cut = answer.not_run and not answer.out_of_time
    if not answer.failures and (is_cut or answer.exit_code == EXIT_UNKNOWN):
        kind = "interrupted" if answer.done and not answer.undecided else "unknown"
        case.add("error", kind, sentence, sentence)
    case = suite.case(class_name, "harness")
    broken = [*answer.crashed, *answer.differed]
    if broken:
        seeds = counted(len(broken), "seed")
        message = f"{seeds} could not be run, or came out differently the second time"
        case.add("error", "harness", message, ", ".join(map(str, broken)))
    return document([suite])
