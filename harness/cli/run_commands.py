"""The commands that make and judge runs, as they stand on the command line.

``test``, ``try``, ``check``, ``replay`` and ``export``. Everything heavy is imported by the command
that needs it, so that a wrong option is answered at once. Source: design, section 6.
"""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter
from rich.console import Console

from splitbrain.contracts.errors import UsageError
from splitbrain.contracts.experiment import Experiment
from splitbrain.contracts.names import DEFAULT_SYSTEM
from splitbrain.contracts.trial import VERIFY_COMMANDS, StandingOptions, TrialOptions
from splitbrain.harness.campaign.replaying.options import ReplayOptions
from splitbrain.harness.cli.command_app import (
    ONE_RUN,
    Json,
    OfHistories,
    OfResults,
    OfRun,
    Whole,
    command,
    completed,
)
from splitbrain.harness.cli.command_end import EXIT_BAD_USAGE
from splitbrain.harness.cli.record_options import PatchFiles, start_patched, with_records
from splitbrain.harness.console.standard_streams import output
from splitbrain.history.errors import HistoryError

if TYPE_CHECKING:
    from splitbrain.harness.run.options import TestOptions

_MODEL = "cas-register"


def _drawn_seed() -> int:
    """Return a small seed, easy to read aloud; it stands in the plan."""
    import secrets

    return secrets.randbelow(1_000_000)


@command(
    "test",
    ONE_RUN,
    "test --runtime simulated --seed 1",
    "test --nemesis partition:leader,kill --time-limit 1m --seeds 0:3",
    "test --nemesis isolate-leader --bug stale-leader-reads --runtime local",
    "test --nemesis plan.toml --dry-run",
)
@with_records(system=DEFAULT_SYSTEM, seed=_drawn_seed)
def run_test_command(  # noqa: D417 - the fields of records describe themselves
    experiment: Experiment,
    seeds: range,
    *,
    runs_folder: Annotated[Path, OfResults] = Path("runs"),
    keep_data: Annotated[bool, OfResults] = False,
    analyze: Annotated[bool | None, OfResults] = None,
    dry_run: Annotated[bool, OfResults, Parameter(negative="")] = False,
    json: Json = False,
    patch: PatchFiles = None,
) -> int:
    """Run a system under load and faults, and judge what clients saw.

    Args:
        runs_folder: Where run folders are made.
        keep_data: Keep the nodes' data folders also when the verdict is valid.
        analyze: Run the Spark analysis after the run; by default unless it is a simulated one.
        dry_run: Show the schedule that would be run, and end; starts nothing.
    """
    start_patched(patch)
    from splitbrain.harness.run.options import TestOptions

    options = TestOptions(experiment=experiment, runs_folder=runs_folder, keep_data=keep_data)
    console = output(as_json=json)
    return _run_seeds(options, seeds, console, analyze=analyze, dry_run=dry_run)


def _run_seeds(
    options: "TestOptions", seeds: range, console: Console, *, analyze: bool | None, dry_run: bool
) -> int:
    if dry_run:
        from splitbrain.harness.cli.dry_run import show_schedules

        return show_schedules(options, seeds, console)
    from splitbrain.harness.cli.commands import run_seeds

    return run_seeds(options, seeds, console, analyze=analyze)


@command(
    "try",
    ONE_RUN,
    "try compose.yaml --port api:8000 --driver http",
    "try compose.yaml --port web:8080 --driver http --nemesis kill:web --time-limit 45s",
)
@with_records(seed=_drawn_seed)
def try_command(  # noqa: D417 - the fields of records describe themselves
    options: TrialOptions,
    seeds: range,
    *,
    runs_folder: Annotated[Path, OfResults] = Path("runs"),
    keep_data: Annotated[bool, OfResults] = False,
    analyze: Annotated[bool | None, OfResults] = None,
    dry_run: Annotated[bool, OfResults, Parameter(negative="")] = False,
    json: Json = False,
) -> int:
    """Run the services of a compose file under load and faults, without an adapter of your own.

    Args:
        runs_folder: Where run folders are made.
        keep_data: Keep the nodes' data folders also when the verdict is valid.
        analyze: Run the Spark analysis after the run.
        dry_run: Show the schedule that would be run, and end; starts nothing.
    """
    from splitbrain.harness.console.console_lines import say
    from splitbrain.harness.run.options import TestOptions
    from splitbrain.systems.trial import tried

    experiment, sentences = tried(options)
    console = output(as_json=json)
    for sentence in sentences:
        say(console, sentence)
    test = TestOptions(experiment=experiment, runs_folder=runs_folder, keep_data=keep_data)
    return _run_seeds(test, seeds, console, analyze=analyze, dry_run=dry_run)


def _add_verifier(name: str) -> None:
    """Add the command that judges a cluster that is there already."""

    @command(
        name,
        ONE_RUN,
        f"{name} broker:9092",
        f"{name} broker:9093 --command-config client.properties --time-limit 5m --rate 500",
    )
    @with_records(seed=_drawn_seed)
    def verify_command(  # noqa: D417 - the fields of records describe themselves
        options: StandingOptions,
        *,
        runs_folder: Annotated[Path, OfResults] = Path("runs"),
        analyze: Annotated[bool | None, OfResults] = None,
        json: Json = False,
    ) -> int:
        """Load a cluster that is there already, and judge what clients saw; no fault is made.

        Args:
            runs_folder: Where run folders are made.
            analyze: Run the Spark analysis after the run.
        """
        from splitbrain.harness.console.console_lines import say
        from splitbrain.harness.run.options import TestOptions
        from splitbrain.systems.verifiers import VERIFIERS

        console = output(as_json=json)
        with VERIFIERS[name]()(options) as (experiment, sentences):
            for sentence in sentences:
                say(console, sentence)
            test = TestOptions(experiment=experiment, runs_folder=runs_folder)
            seeds = range(options.seed, options.seed + 1)
            return _run_seeds(test, seeds, console, analyze=analyze, dry_run=False)


for _name in VERIFY_COMMANDS:
    _add_verifier(_name)


@command(
    "check",
    ONE_RUN,
    "check runs/latest",
    "check history.edn --model cas-register --report page.html",
)
def check_command(
    path: Annotated[Path, OfRun],
    *,
    model: Annotated[str | None, OfHistories, completed("--model")] = None,
    level: Annotated[str | None, OfHistories, completed("--level")] = None,
    history_format: Annotated[
        str | None, OfHistories, Parameter(name="--format"), completed("--format")
    ] = None,
    skip_broken: Annotated[bool, OfHistories] = False,
    report: Annotated[Path | None, OfHistories] = None,
    jobs: Annotated[int | None, OfHistories, Whole] = None,
    json: Annotated[bool, OfResults] = False,
    analyze: Annotated[bool | None, OfResults] = None,
) -> int:
    """Judge a run folder, finished or dead, or a bare history of any origin.

    Args:
        path: Run folder or history file.
        model: What a bare history is judged against: register, cas-register, multi-register, kv,
            counter, set, fifo-queue, unordered-queue, stack, priority-queue, mutex,
            fenced-register, topics, set-full, set-full:stale-reads-allowed, counter-bounds, bank,
            bank:negative-balances-allowed, queue-totals, queue-totals:duplicates-allowed,
            unique-ids, sessions, fencing, list-append, rw-register, rows, log,
            log:duplicates-allowed, log:read-uncommitted, groups, exactly-once or share-groups; by
            default cas-register. Or a model of one's own: path/to/file.py:Name.
        level: Isolation level that transactions (list-append, rw-register, rows) are held to, such
            as read-committed, snapshot-isolation, strong-session-serializable; by default
            strict-serializable.
        history_format: jsonl, edn, jepsen-log, kv, parquet or etcd-robustness; guessed where it can
            be.
        skip_broken: Leave broken lines of a bare history out: the verdict is then at most unknown,
            and the provisional one of what is left stands beside it.
        report: File to write a page to that shows what was found in a bare history.
        jobs: Parts of a bare history judged at the same time; by default as many as there are
            processors.
        json: Print the results as JSON.
        analyze: Run the Spark analysis of a run folder; by default unless the run is a simulated
            one.
    """
    from splitbrain.history.formats import is_history_folder

    is_run = path.is_dir() and not is_history_folder(path)
    if not is_run:
        # Nothing here multiplies matrices, and a process of one thread can be copied.
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    if level is not None:
        model = _with_level(model, level)
    _require_model(model or _MODEL)
    given = {
        "--level": level,
        "--model": model,
        "--format": history_format,
        "--skip-broken": skip_broken,
        "--report": report,
        "--jobs": jobs,
    }
    option = next((name for name, value in given.items() if value not in (None, False)), None)
    if is_run:
        if option is not None:
            raise UsageError(
                f"{option} is for bare histories, and {path} is a folder",
                "Leave it out: a run folder is judged as its plan says",
            )
        from splitbrain.harness.cli.commands import check

        return check(path, output(), as_json=json, analyze=analyze)
    # Apart from the commands around runs, which take ten times as long to load.
    from splitbrain.harness.cli.bare_command import check_bare

    try:
        return check_bare(
            path,
            model or _MODEL,
            output(),
            history_format=history_format,
            skip_broken=skip_broken,
            report=report,
            jobs=jobs,
            as_json=json,
        )
    except HistoryError as error:
        # A file that the user names is part of the request; a run folder is our own work.
        error.exit_code = EXIT_BAD_USAGE
        raise


def _with_level(model: str | None, level: str) -> str:
    """Return the name of a model of transactions with its level."""
    from splitbrain.checker.names import TRANSACTION_MODELS

    if model not in TRANSACTION_MODELS:
        raise UsageError(
            f"--level is for transactions, and {model or _MODEL} is no model of any",
            f"Leave it out, or choose --model {' or '.join(TRANSACTION_MODELS)}",
        )
    return f"{model}:{level}"


def _require_model(model: str) -> None:
    """Refuse a model that does not exist, or cannot be loaded, before anything is looked at."""
    from splitbrain.checker.names import history_checker
    from splitbrain.harness.folder.own_models import make_known

    make_known(model)
    history_checker(model)


@command(
    "replay",
    ONE_RUN,
    "replay runs/latest --times 5",
    "replay runs/latest --trace --from-step 900 --until-step 950",
    "replay --scenario scenario.json",
)
@with_records()
def replay_command(options: ReplayOptions, *, json: Json = False, patch: PatchFiles = None) -> int:
    """Run a recorded plan again: the same operations and the same schedule.

    A simulated run is replayed exactly, step by step, and must come to the same.
    """
    start_patched(patch)
    from splitbrain.harness.cli.commands import replay

    return replay(options, output(as_json=json))


@command(
    "export",
    ONE_RUN,
    "export runs/latest --format perfetto",
    "export runs/latest --format otlp --to http://127.0.0.1:4318",
)
def export_command(  # noqa: D417 - --json describes itself
    run: Path,
    *,
    file_format: Annotated[str, Parameter(name="--format")] = "perfetto",
    file: Annotated[Path | None, OfResults, Parameter(name="--output")] = None,
    to: Annotated[str | None, OfResults] = None,
    json: Json = False,
) -> int:
    """Write the timeline of a run for another tool: operations, faults, leaders and violations.

    Args:
        run: Run folder, finished or dead.
        file_format: perfetto, for https://ui.perfetto.dev and chrome://tracing; or otlp, spans of
            OpenTelemetry.
        file: File to write; packed where its name ends with .gz. By default it is named after the
            run, in this folder.
        to: Address of an OpenTelemetry collector that the spans are sent to instead, over HTTP;
            headers for it stand in OTEL_EXPORTER_OTLP_HEADERS.
    """
    from splitbrain.harness.export.command import ExportOptions, export_run

    options = ExportOptions(format=file_format, output=file, to=to)
    return export_run(run, options, output(as_json=json))
