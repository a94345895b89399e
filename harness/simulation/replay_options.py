"""How ``splitbrain replay`` is to look at a simulated run again."""

import msgspec

from contracts.errors import UsageError


class ReplayOptions(msgspec.Struct, frozen=True, kw_only=True):
    """How a simulated run is looked at again."""

    times: int = 1
    #: Print the story, from a step to a step, both included.
    trace: bool = False
    from_step: int | None = None
    until_step: int | None = None

    @property
    def is_debugging(self) -> bool:
        """Whether more is asked for than the run itself."""
        return self.trace or self.from_step is not None or self.until_step is not None

    def check(self) -> None:
        """Refuse what cannot be meant.

        Raises:
            UsageError: says what.
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
