"""The command ``gate`` as it stands on the command line.

Everything heavy is imported by the command itself. Source: design, section 6; issue 8, item 4.
"""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from splitbrain.contracts.errors import UsageError
from splitbrain.harness.cli.command_app import app
from splitbrain.harness.console.standard_streams import output as standard_output


@app.command(name="gate")
def gate_command(
    *runs: str,
    policy: Path,
    tier: str | None = None,
    baseline: str | None = None,
    output: Path | None = None,
    json: bool = False,
    self_test: Annotated[bool, Parameter(negative="")] = False,
) -> int:
    """Hold runs against a policy: 0 green, 1 red, 2 nothing can be said, 3 the harness failed.

    Parameters
    ----------
    runs
        Run folders, folders of them such as runs/, or ledgers; LEDGER@NIGHT for one night.
    policy
        Policy file (.toml); docs/gate.md says what may stand in it.
    tier
        Tier of the policy, such as pull-request; by default the one that it names.
    baseline
        What regressions and new failures are told from: runs, a gate.json, or REF:PATH of one in
        git; none where there is none yet.
    output
        Folder for gate.json, gate.xml (JUnit) and gate.md.
    json
        Print the answer as JSON.
    self_test
        Prove with synthetic figures that every threshold of the policy can fail; no runs.
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
