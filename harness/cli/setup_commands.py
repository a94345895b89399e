"""The commands around the runs: systems and this machine, as they stand on the command line.

``clean``, ``systems``, ``new-system``, ``init``, ``help``, ``explain``, ``docs``, ``completion``
and ``doctor``. Everything heavy is imported by the command that needs it.
"""

from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from splitbrain.contracts.errors import UsageError
from splitbrain.contracts.nearest import or_nearest
from splitbrain.harness.cli.command_app import (
    SETUP,
    Json,
    OfResults,
    OfSystems,
    Repeatable,
    Whole,
    app,
    command,
    completed,
)
from splitbrain.harness.cli.record_options import pairs_of
from splitbrain.harness.console.standard_streams import output as standard_output


@command(
    "clean",
    SETUP,
    "clean",
)
def clean_command(*, json: Json = False) -> int:
    """Remove what dead runs left behind: containers, networks, volumes. Living runs are spared."""
    from splitbrain.harness.campaign.cleaning import clean

    return clean(standard_output(as_json=json))


@command(
    "systems",
    SETUP,
    "systems",
    "systems check my_store.py:Store --runtime local",
)
def systems_command(
    action: Annotated[str | None, completed("systems")] = None,
    name: Annotated[str | None, completed("systems")] = None,
    *,
    runtime: Annotated[str, OfSystems, completed("--runtime")] = "docker",
    nodes: Annotated[int | None, OfSystems, Whole] = None,
    setting: Annotated[list[str] | None, OfSystems, Repeatable] = None,
    runs_folder: Annotated[Path, OfResults] = Path("runs"),
    json: Annotated[bool, OfResults] = False,
) -> int:
    """List the systems that can be tested; `systems check NAME` tries one's adapter in short runs.

    Args:
        action: check, or nothing for the list.
        name: System to be checked, or path/to/file.py:Class.
        runtime: Of check: docker or local.
        nodes: Of check: number of nodes; by default 3, or as many as it takes at least.
        setting: Of check: NAME=VALUE, a setting of the system by its own name; repeatable.
        runs_folder: Of check: where its run folders are made.
        json: Print the list, or the findings, as JSON.
    """
    if action is None:
        from splitbrain.harness.cli.systems_list import list_systems

        return list_systems(standard_output(), as_json=json)
    if action != "check" or name is None:
        raise UsageError(
            f"systems cannot be asked for {' '.join(filter(None, (action, name)))!r}",
            "Write `splitbrain systems`, or `splitbrain systems check NAME`",
        )
    from splitbrain.harness.cli.conformance import check_system
    from splitbrain.systems.registry import admitted

    return check_system(
        admitted(name),
        standard_output(),
        runtime=runtime,
        nodes=nodes,
        settings=pairs_of("--setting", setting),
        runs_folder=runs_folder,
        as_json=json,
    )


@command(
    "new-system",
    SETUP,
    "new-system my-store --folder systems",
)
def new_system_command(name: str, *, folder: Path = Path(), json: Json = False) -> int:
    """Write a folder with a system of one's own that runs as it is, to be changed part by part.

    Args:
        name: Name of the system, such as my-store.
        folder: Where the folder of that name is made.
        json: Print the answer as one line of JSON; everything else goes to standard error.
    """
    from splitbrain.harness.cli.new_system import write_system

    return write_system(name, folder, standard_output(as_json=json))


@command(
    "init",
    SETUP,
    "init --system my_store.py:MyStore",
    "init --system my-store --output nights --time-budget 8h",
)
def init_command(
    *,
    system: str,
    output: Path = Path(),
    runtime: str | None = None,
    time_budget: str = "30m",
    json: Json = False,
) -> int:
    """Write a suite, a policy and a night for a system; `splitbrain nightly` runs them as they are.

    Args:
        system: System to be tested by its name, or path/to/file.py:Class.
        output: Folder for suite.toml, policy.toml and night.toml; none of them may be there.
        runtime: docker, local or simulated; by default the one that needs least on this machine.
        time_budget: What a night may take, such as 45m or 8h.
        json: Print the answer as one line of JSON; everything else goes to standard error.
    """
    from splitbrain.harness.cli.new_night import write_night

    return write_night(
        system, output, standard_output(as_json=json), runtime=runtime, time_budget=time_budget
    )


@command("help", SETUP, "help", "help sim")
def help_command(
    name: Annotated[str | None, completed("help"), Parameter(name="command")] = None,
) -> int:
    """Show what there is, or what one command takes.

    Args:
        name: Command to be shown; without one, all of them.
    """
    names = [each for each in app if not each.startswith("-")]
    if name is not None and name not in names:
        raise UsageError(f"there is no command {name!r}", or_nearest(name, names, "commands"))
    app.help_print([] if name is None else [name])
    return 0


@command(
    "explain",
    SETUP,
    "explain INV-09",
    "explain stale read",
    "explain 64",
)
def explain_command(
    *name: Annotated[str, Parameter(negative=""), completed("explain")], json: Json = False
) -> int:
    """Explain an invariant, checker, fault, anomaly, exit code, verdict or planted bug by its name.

    Tells what it says, why it matters, how it breaks, what to do next, and its source. Without a
    name it lists what can be explained.

    Args:
        name: Such as INV-09, lost-commits, isolate-leader-8s, 64, or stale read; or a group, such
            as invariants.
        json: Print the answer as one line of JSON; everything else goes to standard error.
    """
    from splitbrain.harness.cli.explain import explain

    return explain(name, standard_output(as_json=json))


@command(
    "docs",
    SETUP,
    "docs",
    "docs suite",
    "docs faults/power",
)
def docs_command(
    page: Annotated[str | None, completed("docs")] = None, *, json: Json = False
) -> int:
    """Print a page of the documentation; without a name, its table of contents.

    Args:
        page: Such as suite, your-system or faults/power; templates for CI are pages as well.
        json: Print the answer as one line of JSON; everything else goes to standard error.
    """
    from splitbrain.harness.cli.pages import show_page

    return show_page(page, standard_output(as_json=json))


@command(
    "completion",
    SETUP,
    "completion bash --install",
    "completion zsh",
)
def completion_command(
    shell: Literal["bash", "zsh", "fish"],
    *,
    install: Annotated[bool, Parameter(negative="")] = False,
) -> int:
    """Print the script with which a shell completes commands, options, names and run folders.

    Args:
        shell: Shell that is to load it.
        install: Write it to the place where the shell looks for it, and have its startup file load
            it, instead of printing it.
    """
    from splitbrain.harness.cli.completion import have_zsh_look, shell_script

    script = shell_script(app.generate_completion(prog_name="splitbrain", shell=shell), shell)
    if not install:
        print(script, end="")
        return 0
    from splitbrain.harness.folder.refusals import tell_refusal

    with tell_refusal("install the completion", f"for {shell}", "Print it, and save it yourself."):
        place = app.install_completion(shell=shell)
        place.write_text(script, encoding="utf-8")
        if shell == "zsh":
            have_zsh_look(Path.home() / ".zshrc")
    print(f"{place} has it; a new {shell} loads it.")
    return 0


@command(
    "doctor",
    SETUP,
    "doctor",
    "doctor --json",
)
def doctor_command(
    *, json: bool = False, spark: bool = False, runs_folder: Path = Path("runs")
) -> int:
    """Say what this machine can do, and what to do about what it cannot.

    Args:
        json: Print the findings as JSON.
        spark: Start a Spark session too, which takes some seconds.
        runs_folder: Where run folders are to be made.
    """
    from splitbrain.harness.cli.doctor import doctor

    return doctor(standard_output(), as_json=json, spark=spark, runs_folder=runs_folder)
