"""The command line of ``splitbrain replay``."""

from pathlib import Path

import msgspec

from splitbrain.contracts.errors import UsageError


class ReplayOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The command line; None: not given."""

    run: Path | None = None
    #: A world that belongs to no run.
    scenario: Path | None = None
    #: Hit the nodes that were hit, instead of resolving each symbolic target anew.
    pinned: bool = False
    times: int = 1
    #: Another runtime than the recorded one.
    runtime: str | None = None
    #: Where new run folders are made; None: beside the recorded run's test.
    runs_folder: Path | None = None
    #: Whether the Spark analysis is run; None: unless the run is simulated.
    analyze: bool | None = None
    #: Print the story, from a step to a step, both included.
    trace: bool = False
    from_step: int | None = None
    until_step: int | None = None

    @property
    def is_debugging(self) -> bool:
        """Whether more is asked for than the run itself."""
        return self.trace or self.from_step is not None or self.until_step is not None

    def check(self) -> None:
        """Refuse what cannot be meant, whatever the run is.

        Raises:
            UsageError: says what.
        """
        if self.times < 1:
            raise UsageError(f"--times cannot be {self.times}", "Choose a number of at least 1")
        is_of_run = self.run is not None or self.runtime is not None or self.runs_folder is not None
        if self.scenario is not None and (is_of_run or self.pinned):
            raise UsageError(
                "--scenario names a world that belongs to no run, and is run as it is",
                "Leave out the run, --pinned, --runtime and --runs-folder",
            )

    def check_steps(self) -> None:
        """Refuse a story that cannot be told.

        Raises:
            UsageError: says why.
        """
        for name, step in (("--from-step", self.from_step), ("--until-step", self.until_step)):
            if step is not None and step < 1:
                raise UsageError(f"{name} cannot be {step}", "Choose a number of at least 1")
        if self.from_step is not None and not self.trace:
            raise UsageError("--from-step is given without --trace", "Add --trace")
        if (
            self.from_step is not None
            and self.until_step is not None
            and self.from_step > self.until_step
        ):
            raise UsageError(
                f"--from-step {self.from_step} comes after --until-step {self.until_step}",
                "Choose a range of steps",
            )
