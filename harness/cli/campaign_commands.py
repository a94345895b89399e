"""The commands that make many runs and weigh them, as they stand on the command line.

``sim``, ``shrink``, ``suite``, ``findings``, ``nightly`` and ``gate``. Everything heavy is imported
by the command that needs it. Source: design, section 6.
"""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from splitbrain.contracts.errors import UsageError
from splitbrain.harness.campaign.shrinking.options import ShrinkOptions
from splitbrain.harness.campaign.sweep.options import SimOptions
from splitbrain.harness.cli.command_app import (
    MANY_RUNS,
    Json,
    OfNights,
    OfPolicies,
    OfResults,
    OfRun,
    Whole,
    command,
    completed,
)
from splitbrain.harness.cli.record_options import (
    PatchFiles,
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
    dry_run: Annotated[bool, OfResults, Parameter(negative="")] = False,
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
        dry_run: Print the runs of a new night, in their order, and end; needs no engine.
        runs_folder: Where the nights' folders are made, below suites/.
        ledger: The ledger; by default ledger.jsonl in the folder of runs.
        json: Print the answer as one line of JSON; everything else goes to standard error.
    """
    from splitbrain.harness.campaign.suite.command import (
        SuiteOptions,
        report,
        run_suite,
        show_plan,
    )

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
    carry_out = show_plan if dry_run else run_suite
    return carry_out(file, options, standard_output(as_json=json))


@command(
    "findings",
    MANY_RUNS,
    "findings",
    "findings run --time-budget 20m",
)
def findings_command(
    action: str | None = None,
    *names: Annotated[str, completed("findings")],
    fresh: Annotated[bool, OfNights] = False,
    jobs: Annotated[int | None, OfNights, Whole] = None,
    time_budget: Annotated[str | None, OfNights] = None,
    runs_folder: Annotated[Path, OfResults] = Path("runs"),
    json: Json = False,
) -> int:
    """List the known losses of the systems; `findings run NAME` shows one, with its control.

    Args:
        action: run, or nothing for the list.
        names: Of run: known losses to be shown; by default all.
        fresh: Of run: begin anew although the last showing is not over.
        jobs: Of run: runs at the same time; by default what the known loss says.
        time_budget: Of run: what each may take, such as 45m; by default what it says.
        runs_folder: Of run: where its folders are made, below suites/.
        json: Print the answer as one line of JSON; everything else goes to standard error.
    """
    from splitbrain.harness.campaign.findings import list_findings, run_findings
    from splitbrain.harness.campaign.suite.command import SuiteOptions

    console = standard_output(as_json=json)
    if action is None:
        return list_findings(console)
    if action != "run":
        problem = f"findings cannot be asked for {action!r}"
        raise UsageError(problem, "Write `splitbrain findings`, or `splitbrain findings run NAME`")
    options = SuiteOptions(runs_folder=runs_folder, time_budget=time_budget, jobs=jobs, fresh=fresh)
    return run_findings(names, options, console)


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
        file: Nightly file (.toml); `splitbrain docs nightly` says what may stand in it.
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
        policy: Policy file (.toml); `splitbrain docs gate` says what may stand in it.
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
