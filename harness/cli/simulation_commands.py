"""The commands ``sim`` and ``shrink`` as they stand on the command line.

Everything heavy is imported by the command that needs it. Source: design, section 6.
"""

from splitbrain.harness.campaign.shrinking.options import ShrinkOptions
from splitbrain.harness.campaign.sweep.options import SimOptions
from splitbrain.harness.cli.command_app import app
from splitbrain.harness.cli.patch_option import PatchFiles, start_patched
from splitbrain.harness.cli.record_options import with_records
from splitbrain.harness.console.standard_streams import output


@app.command(name="sim")
@with_records()
def sim_command(options: SimOptions, *, patch: PatchFiles = None) -> int:
    """Sweep seeds through an exact simulation: each draws its own world, load and faults."""
    start_patched(patch)
    from splitbrain.harness.campaign.sweep.command import run_sim

    return run_sim(options, output())


@app.command(name="shrink")
@with_records()
def shrink_command(options: ShrinkOptions, *, patch: PatchFiles = None) -> int:
    """Make a run that failed as small as it can be while it fails in the same way.

    A simulated run is shrunk exactly. In containers smaller plans are run, several times each; what
    the failure looks like in simulation, where the system has one, shows where to begin.
    """
    start_patched(patch)
    from splitbrain.harness.campaign.shrinking.command import shrink

    return shrink(options, output())
