"""The command line: what the user wants, and the exit code that says what came of it.

Source: design, section 6.

Errors for users are one sentence without a traceback. Everything heavy is imported by the command
that needs it, so that a wrong option is answered at once.
"""

import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from cyclopts import App, CycloptsError, Parameter
from rich.console import Console

from contracts.errors import HarnessError, UsageError
from harness.tool_version import tool_version
from systems.registry import DEFAULT_SYSTEM

EXIT_HARNESS_FAILED = 3
EXIT_BAD_USAGE = 64

app = App(
    name="splitbrain",
    help="Find the bugs that consensus systems have only under failure.",
    version=tool_version,
    version_flags=["--version"],
)

_Repeatable = Parameter(negative="", consume_multiple=False)


@app.command(name="test")
def run_test_command(
    *,
    system: str = DEFAULT_SYSTEM,
    workload: str = "register",
    nemesis: str = "partition,pause,kill",
    nodes: int = 3,
    time_limit: float = 60.0,
    seed: int | None = None,
    runtime: str = "docker",
    concurrency: int = 10,
    rate: float = 200.0,
    operation_timeout: float = 1.0,
    bug: Annotated[list[str] | None, _Repeatable] = None,
    setting: Annotated[list[str] | None, _Repeatable] = None,
    workload_option: Annotated[list[str] | None, _Repeatable] = None,
    runs_folder: Path = Path("runs"),
    keep_data: bool = False,
    analyze: bool = True,
) -> int:
    """Run a system under load and faults, and judge what clients saw.

    Parameters
    ----------
    system
        System under test; 'splitbrain systems' lists them.
    workload
        What clients do: register or set.
    nemesis
        Faults as kind[:target], comma-separated (partition:leader,kill), a scripted plan
        (isolate-leader, leader-kill), a plan file (.json, .toml), or none.
    nodes
        Number of nodes.
    time_limit
        Seconds of load.
    seed
        Master seed; drawn and printed if not given.
    runtime
        Where nodes live: docker.
    concurrency
        Worker slots, about half of them pinned to one node each.
    rate
        Operations per second over all slots.
    operation_timeout
        Seconds after which an operation's outcome is unknown.
    bug
        Planted bug to switch on; repeatable.
    setting
        NAME=VALUE, a setting of the system by its own name; repeatable.
    workload_option
        NAME=VALUE, an option of the workload; repeatable.
    runs_folder
        Where run folders are made.
    keep_data
        Keep the nodes' data folders also when the verdict is valid.
    analyze
        Run the Spark analysis after the run.
    """
    from harness.commands import run_and_judge
    from harness.options import TestOptions

    options = TestOptions(
        system=system,
        workload=workload,
        workload_options=_pairs("--workload-option", workload_option),
        nemesis=nemesis,
        nodes=nodes,
        time_limit_s=time_limit,
        seed=_drawn_seed() if seed is None else seed,
        runtime=runtime,
        concurrency=concurrency,
        rate=rate,
        operation_timeout_s=operation_timeout,
        bugs=tuple(bug or ()),
        settings=_pairs("--setting", setting),
        runs_folder=runs_folder,
        keep_data=keep_data,
    )
    return run_and_judge(options, Console(), analyze=analyze)


@app.command(name="check")
def check_command(
    path: Path,
    *,
    model: str = "cas-register",
    history_format: Annotated[str | None, Parameter(name="--format")] = None,
    json: bool = False,
    analyze: bool = True,
) -> int:
    """Judge a run folder, finished or dead, or a bare history of any origin.

    Parameters
    ----------
    path
        Run folder or history file.
    model
        What a bare history is judged against.
    history_format
        jsonl, edn or jepsen-log; guessed where it can be.
    json
        Print the results as JSON.
    analyze
        Run the Spark analysis of a run folder where it is missing.
    """
    from harness.commands import check

    return check(path, model, history_format, Console(), as_json=json, analyze=analyze)


@app.command(name="analyze")
def analyze_command(run: Path) -> int:
    """Run the Spark analysis of a run folder again, and judge it with the new figures.

    Parameters
    ----------
    run
        Run folder, or runs/latest.
    """
    from harness.commands import analyze

    return analyze(run, Console())


@app.command(name="replay")
def replay_command(
    run: Path,
    *,
    pinned: bool = False,
    times: int = 1,
    runtime: str | None = None,
    runs_folder: Path | None = None,
    analyze: bool = True,
) -> int:
    """Run a recorded plan again: the same operations and the same schedule.

    Parameters
    ----------
    run
        Run folder, or runs/latest.
    pinned
        Hit the nodes that were hit, instead of whoever leads this time.
    times
        How often; the number of invalid ones is reported.
    runtime
        Another runtime than the recorded one.
    runs_folder
        Where the new run folders are made; by default beside the recorded one.
    analyze
        Run the Spark analysis after each run.
    """
    from harness.commands import replay

    if times < 1:
        raise UsageError(f"--times cannot be {times}", "Choose a number of at least 1")
    return replay(
        run,
        Console(),
        pinned=pinned,
        times=times,
        runtime=runtime,
        runs_folder=runs_folder,
        analyze=analyze,
    )


@app.command(name="clean")
def clean_command() -> int:
    """Remove what dead runs left behind: containers, networks, volumes. Living runs are spared."""
    from harness.upkeep import clean

    return clean(Console())


@app.command(name="systems")
def systems_command() -> int:
    """List the systems that can be tested, with their planted bugs."""
    from harness.upkeep import list_systems

    return list_systems(Console())


@app.command(name="doctor")
def doctor_command() -> int:
    """Say what this machine can do, and what to do about what it cannot."""
    from harness.upkeep import doctor

    return doctor(Console())


def main(arguments: Sequence[str] | None = None) -> None:
    """Entry point of the ``splitbrain`` command; ends the process with its exit code."""
    sys.exit(run(sys.argv[1:] if arguments is None else arguments))


def run(arguments: Sequence[str]) -> int:
    """Run one command line and return its exit code; prints one sentence for any error."""
    errors = Console(stderr=True, soft_wrap=True, highlight=False, markup=False)
    try:
        result = app(
            list(arguments),
            exit_on_error=False,
            print_error=False,
            result_action="return_value",
        )
    except CycloptsError as error:
        errors.print(f"splitbrain: {_one_line(str(error))}")
        return EXIT_BAD_USAGE
    except HarnessError as error:
        errors.print(f"splitbrain: {error}")
        return error.exit_code
    except KeyboardInterrupt:
        errors.print("splitbrain: interrupted")
        return EXIT_HARNESS_FAILED
    except Exception:  # noqa: BLE001 - the last resort
        # A defect of ours: the traceback is what the report of it needs.
        traceback.print_exc()
        errors.print("splitbrain: this is a defect of splitbrain; please report it.")
        return EXIT_HARNESS_FAILED
    return result if isinstance(result, int) else 0


def _pairs(option: str, values: list[str] | None) -> dict[str, str]:
    pairs: dict[str, str] = {}
    for text in values or ():
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise UsageError(f"{option} {text!r} is no pair", f"Write {option} NAME=VALUE")
        pairs[name] = value
    return pairs


def _drawn_seed() -> int:
    """A small seed, easy to read aloud; it stands in the plan."""
    import secrets

    return secrets.randbelow(1_000_000)


def _one_line(text: str) -> str:
    return " ".join(text.split())


if __name__ == "__main__":
    main()
