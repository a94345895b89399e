"""The command line of ``splitbrain replay``."""

from pathlib import Path
from typing import Annotated

import msgspec

from splitbrain.contracts.errors import UsageError
from splitbrain.contracts.experiment import Option


class ReplayOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Options of ``splitbrain replay``; None: not given."""

    run: Annotated[Path | None, Option("Run folder, or runs/latest.", is_positional=True)] = None
    scenario: Annotated[
        str | None,
        Option(
            "Instead of a run, a simulated world that is run as it is: an edited scenario.json, "
            "or the blob:... of a line that reproduces a failure.",
            group="Replays",
        ),
    ] = None
    system: Annotated[
        str | None,
        Option(
            "The run's system, where it is one of a file: path/to/file.py:Class.",
            group="System",
        ),
    ] = None
    pinned: Annotated[
        bool,
        Option(
            "Hit the nodes that were hit, instead of whoever leads this time.",
            group="Replays",
        ),
    ] = False
    times: Annotated[
        int,
        Option(
            "How often; the number that failed with the same verdict is reported.",
            1,
            group="Replays",
        ),
    ] = 1
    runtime: Annotated[
        str | None,
        Option(
            "Another runtime than the recorded one.",
            group="Replays",
        ),
    ] = None
    runs_folder: Annotated[
        Path | None,
        Option(
            "Where the new run folders are made; by default beside the recorded one.",
            group="Results",
        ),
    ] = None
    analyze: Annotated[
        bool,
        Option(
            "Run the Spark analysis after each run; replays are compared by verdicts alone.",
            group="Results",
        ),
    ] = False
    trace: Annotated[
        bool,
        Option(
            "Print what happened inside of a simulated run, one line each.",
            group="Steps of a simulated run",
        ),
    ] = False
    from_step: Annotated[
        int | None,
        Option(
            "First step of the trace.",
            1,
            group="Steps of a simulated run",
        ),
    ] = None
    until_step: Annotated[
        int | None,
        Option(
            "End a simulated run after this step.",
            1,
            group="Steps of a simulated run",
        ),
    ] = None

    @property
    def is_debugging(self) -> bool:
        """Return whether a trace or a part of the run is asked for."""
        return self.trace or self.from_step is not None or self.until_step is not None

    def check(self) -> None:
        """Refuse combinations that make no sense for any run; raise UsageError."""
        is_of_run = self.run is not None or self.runtime is not None or self.runs_folder is not None
        if self.scenario is not None and (is_of_run or self.pinned):
            raise UsageError(
                "--scenario names a world that belongs to no run, and is run as it is",
                "Leave out the run, --pinned, --runtime and --runs-folder",
            )

    def check_steps(self) -> None:
        """Refuse steps that do not fit the trace; raise UsageError."""
        if self.from_step is not None and not self.trace:
            raise UsageError("--from-step is given without --trace", "Add --trace")
        first, last = self.from_step, self.until_step
        if first is not None and last is not None and first > last:
            problem = f"--from-step {first} comes after --until-step {last}"
            raise UsageError(problem, "Choose a range of steps")
