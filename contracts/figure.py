"""A figure of a release gate: its name, its unit, which way is better, what it is over."""

from typing import Literal

import msgspec

#: ``count``: whole, from 0. ``share``: 0 to 1. ``ms`` and ``per-second``: from 0.
Unit = Literal["count", "share", "ms", "per-second"]
Better = Literal["lower", "higher", "neither"]
#: Attributes by which the runs, seeds, faults, operations or checkers of a figure are selected.
Dimension = Literal[
    "system", "version", "workload", "runtime", "fault", "operation", "checker", "fingerprint"
]

#: Dimensions of a whole run.
RUN_DIMENSIONS: tuple[Dimension, ...] = ("system", "version", "workload", "runtime")


class Figure(msgspec.Struct, frozen=True, kw_only=True):
    """One number that can be asked of any selection of runs."""

    #: Snake case; ends in its unit where that is milliseconds.
    name: str
    unit: Unit
    better: Better
    #: Population, in words: all operations, the worst run.
    over: str
    #: Definition, as a clause.
    meaning: str
    dimensions: tuple[Dimension, ...] = RUN_DIMENSIONS
    #: Name of its samples, plural.
    samples_of: str
    #: Fewer samples than this on either side prove no regression.
    samples_min: int = 1


class Condition(msgspec.Struct, frozen=True, order=True):
    """``system=kraft``, or with ``!=`` all but that."""

    dimension: Dimension
    value: str
    is_equal: bool = True

    def holds_for(self, value: str) -> bool:
        """Return whether a value of the dimension is selected."""
        return (value == self.value) is self.is_equal

    @property
    def text(self) -> str:
        """Form in a policy."""
        return f"{self.dimension}{'=' if self.is_equal else '!='}{self.value}"


class Subject(msgspec.Struct, frozen=True, order=True):
    """A figure over what meets all conditions."""

    figure: str
    #: Sorted, each once.
    conditions: tuple[Condition, ...] = ()

    @property
    def text(self) -> str:
        """``latency_p99_ms{system=kraft}``; the key of this subject in every file."""
        if not self.conditions:
            return self.figure
        return f"{self.figure}{{{', '.join(condition.text for condition in self.conditions)}}}"

    def conditions_on(self, dimension: Dimension) -> tuple[Condition, ...]:
        """Return its conditions on one dimension."""
        return tuple(item for item in self.conditions if item.dimension == dimension)


class Measured(msgspec.Struct, frozen=True):
    """A figure's value, and how much stands behind it."""

    #: None: it cannot be computed.
    value: float | None
    samples: int = 0
    #: Why it cannot be computed, or not be trusted, one clause.
    lack: str | None = None
    #: Run that it was found in, of a least or greatest value.
    worst_in: str | None = None


class SelectedRun(msgspec.Struct, frozen=True):
    """One run to be measured, with the dimensions that conditions are on."""

    #: One of the two: a folder, or a lake and the run's id in it.
    folder: str | None
    system: str
    version: str
    workload: str
    runtime: str
    lake: str | None = None
    run_id: str | None = None


class FiguresRequest(msgspec.Struct, frozen=True):
    """Question of the gate to Spark."""

    #: At least one.
    runs: tuple[SelectedRun, ...]
    #: Figures of ``spark_analysis.figure_catalogue``; at least one.
    subjects: tuple[Subject, ...]


class FiguresAnswer(msgspec.Struct, frozen=True):
    """Answer of Spark."""

    #: Subject's text to its value, its samples, and the id of the run that a least or greatest
    #: value was found in.
    figures: dict[str, tuple[float | None, int, str | None]]
    #: Unreadable parts of the runs, one sentence each.
    damage: tuple[str, ...]
