"""The commands that make many runs, and those around the runs, as they stand on the command line.

``sim``, ``shrink``, ``suite``, ``nightly``, ``gate``, ``clean``, ``systems``, ``new-system``,
``init``, ``help``, ``explain``, ``completion`` and ``doctor``.
Everything heavy is imported by the command that needs it. Source: design, section 6.
"""

from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from splitbrain.contracts.errors import UsageError
from splitbrain.contracts.nearest import or_nearest
from splitbrain.harness.campaign.shrinking.options import ShrinkOptions
from splitbrain.harness.campaign.sweep.options import SimOptions
from splitbrain.harness.cli.command_app import (
    MANY_RUNS,
    SETUP,
    Json,
    OfNights,
    OfPolicies,
    OfResults,
    OfRun,
    OfSystems,
    Repeatable,
    Whole,
    app,
    command,
    completed,
)
from splitbrain.harness.cli.record_options import (
    PatchFiles,
    pairs_of,
    start_patched,
    with_records,
)
from splitbrain.harness.console.standard_streams import output as standard_output
from splitbrain.history.spark_extra import require_spark


@command(
    "sim",
    MANY_RUNS,
    "sim --seeds 0:1000 --jobs 2",
    "sim --seed 1 --bug prior-epoch-commit",
    "sim --scenario edited.json",
    "sim --like runs/latest",
)
@with_records()
def sim_command(options: SimOptions, *, json: Json = False, patch: PatchFiles = None) -> int:
    """Sweep seeds through an exact simulation: each draws its own world, load and faults."""
    start_patched(patch)
    from splitbrain.harness.campaign.sweep.command import run_sim

    return run_sim(options, standard_output(as_json=json))


@command(
    "shrink",
    MANY_RUNS,
    "shrink runs/latest",
    "shrink runs/latest --save-test tests/regressions/test_found.py",
    "shrink runs/latest --tries 6 --at-least 2 --time-limit 30m",
)
@with_records()
def shrink_command(options: ShrinkOptions, *, json: Json = False, patch: PatchFiles = None) -> int:
    """Make a run that failed as small as it can be while it fails in the same way.

    A simulated run is shrunk exactly. In containers smaller plans are run, several times each; what
    the failure looks like in simulation, where the system has one, shows where to begin.
    """
    start_patched(patch)
    from splitbrain.harness.campaign.shrinking.command import shrink

    return shrink(options, standard_output(as_json=json))


@command(
    "suite",
    MANY_RUNS,
    "suite bench/suites/nightly.toml --time-budget 45m",
    "suite bench/suites/nightly.toml --report-only",
)
def suite_command(
    file: Path | None = None,
    *,
    time_budget: Annotated[str | None, OfNights] = None,
    jobs: Annotated[int | None, OfNights, Whole] = None,
    night_seed: Annotated[int | None, OfNights, Whole] = None,
    fresh: Annotated[bool, OfNights] = False,
    report_only: Annotated[bool, OfResults] = False,
    runs_folder: Annotated[Path, OfResults] = Path("runs"),
    ledger: Annotated[Path | None, OfResults] = None,
    json: Json = False,
) -> int:
    """Run a matrix of tests, one night at a time; goes on with a night that was cut short.

    Args:
        file: Suite file (.toml); with --report-only it may be left out.
        time_budget: What the night may take, such as 45m or 1h30m; by default what the file says.
        jobs: Runs at the same time; by default what the file says.
        night_seed: Draw fresh seeds from this, to repeat a night; drawn and printed if not given.
        fresh: Begin a new night although the last one is not over.
        report_only: Print what the ledger says of the last night and of all; run nothing.
        runs_folder: Where the nights' folders are made, below suites/.
        ledger: The ledger; by default ledger.jsonl in the folder of runs.
        json: Print the answer as one line of JSON; everything else goes to standard error.
    """
    from splitbrain.harness.campaign.suite.command import SuiteOptions, report, run_suite

    options = SuiteOptions(
        runs_folder=runs_folder,
        ledger=ledger,
        time_budget=time_budget,
        jobs=jobs,
        night_seed=night_seed,
        fresh=fresh,
    )
    if report_only:
        return report(file, options, standard_output(as_json=json))
    if file is None:
        raise UsageError("no suite file is named", "Name one, such as bench/suites/nightly.toml")
    return run_suite(file, options, standard_output(as_json=json))


@command(
    "nightly",
    MANY_RUNS,
    "nightly nightly.toml --time-budget 8h",
)
def nightly_command(
    file: Path,
    *,
    time_budget: Annotated[str | None, OfNights] = None,
    fresh: Annotated[bool, OfNights] = False,
    runs_folder: Annotated[Path, OfResults] = Path("runs"),
    json: Json = False,
) -> int:
    """Run a suite's night, put its runs into a lake and hold them against a policy: one answer.

    Killed at any point, the same command goes on. A night whose planted bugs went unseen is void.

    Args:
        file: Nightly file (.toml); docs/nightly.md says what may stand in it.
        time_budget: What all of it may take, such as 45m or 8h; by default what the file says.
        fresh: Begin a new night although the last one is not over.
        runs_folder: Where the nights' folders are made, below suites/ and nightly/.
        json: Print the answer as one line of JSON; everything else goes to standard error.
    """
    require_spark("A night's lake")
    from splitbrain.harness.campaign.nightly.command import NightlyOptions, run_nightly

    options = NightlyOptions(runs_folder=runs_folder, time_budget=time_budget, fresh=fresh)
    return run_nightly(file, options, standard_output(as_json=json))


@command(
    "gate",
    MANY_RUNS,
    "gate runs --policy policy.toml --tier pull-request --output gate",
    "gate runs/ledger.jsonl --policy policy.toml --baseline last",
    "gate runs --policy policy.toml --baseline main:gate.json",
    "gate --policy policy.toml --self-test",
)
def gate_command(
    *runs: Annotated[str, OfRun],
    policy: Annotated[Path, OfPolicies],
    tier: Annotated[str | None, OfPolicies] = None,
    baseline: Annotated[str | None, OfPolicies] = None,
    output: Annotated[Path | None, OfResults] = None,
    json: Annotated[bool, OfResults] = False,
    self_test: Annotated[bool, OfPolicies, Parameter(negative="")] = False,
) -> int:
    """Hold runs against a policy: 0 green, 1 red, 2 nothing can be said, 3 the harness failed.

    Args:
        runs: Run folders, folders of them such as runs/, or ledgers; LEDGER@NIGHT for one night.
        policy: Policy file (.toml); docs/gate.md says what may stand in it.
        tier: Tier of the policy, such as pull-request; by default the one that it names.
        baseline: What regressions and new failures are told from: last, for the last night or gate
            that is found beside the runs; runs, a gate.json, or REF:PATH of one in git; none where
            there is none yet.
        output: Folder for gate.json, gate.xml (JUnit), gate.sarif and gate.md.
        json: Print the answer as JSON.
        self_test: Prove with synthetic figures that every threshold of the policy can fail; no
            runs.
    """
    from splitbrain.harness.campaign.gate.command import GateOptions, run_gate, run_self_test

    options = GateOptions(policy=policy, tier=tier, baseline=baseline, output=output, as_json=json)
    if self_test:
        if runs or baseline or output:
            raise UsageError(
                "--self-test looks at the policy alone", "Leave out runs, --baseline and --output"
            )
        return run_self_test(options, standard_output())
    return run_gate(runs, options, standard_output())


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
    action: str | None = None,
    name: str | None = None,
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
def help_command(name: Annotated[str | None, Parameter(name="command")] = None) -> int:
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
    if not install:
        print(app.generate_completion(prog_name="splitbrain", shell=shell), end="")
        return 0
    from splitbrain.harness.folder.refusals import tell_refusal

    with tell_refusal("install the completion", f"for {shell}", "Print it, and save it yourself."):
        place = app.install_completion(shell=shell)
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
