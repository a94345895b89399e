"""Records of a suite file, and the meaning of its numbers; reads nothing, draws nothing.

A suite is a list of matrices and programs. In a matrix every field that is also an option of
``splitbrain test`` takes one value or a list of values; the cells are the product of the lists.
``docs/suite.md`` shows the file to users. Source: issue 4, item 8.
"""

import re
from collections.abc import Callable
from types import NoneType
from typing import Annotated, Any, Final, Literal, get_args, get_origin

import msgspec

from splitbrain.contracts.experiment import Experiment
from splitbrain.contracts.explanation import KnownLoss
from splitbrain.history.durations import Duration
from splitbrain.history.options import OptionField, options_of

Name = Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9 ._-]{0,59}$")]
#: Settings by name; a number or a truth value is handed on as text.
Pairs = dict[str, str | int | float | bool]
Expectation = Literal["valid", "invalid"]

#: Seconds of a run beyond its time limit: deploying, healing, judging.
RUN_OVERHEAD_S = 600.0


class FreshSeeds(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Seeds drawn anew each night from the night's own seed, so that nights add up."""

    count: Annotated[int, msgspec.Meta(ge=1)]


#: One seed, ``7`` or ``"7"``, a list, a half-open range ``"0:40"``, or ``{ count = 20 }``.
Seeds = int | str | tuple[int, ...] | FreshSeeds


#: Options of ``splitbrain test`` that are axes of a matrix, in the order of cell names.
AXES: Final = {field.key: field for field in options_of(Experiment) if field.name != "seed"}


def _value_type(axis: OptionField) -> Any:
    """Return the type of one written value; several bugs may be switched on together."""
    if get_origin(axis.type) is dict:
        return Pairs
    if axis.is_repeatable:
        return str | tuple[str, ...]
    if axis.is_duration:
        return Duration
    return next(type_ for type_ in get_args(axis.type) or (axis.type,) if type_ is not NoneType)


def _values_type(axis: OptionField) -> Any:
    value = _value_type(axis)
    type_ = str if get_origin(axis.type) is tuple else value
    return type_ | tuple[value, ...]


def _axes(name: str, type_of: Callable[[OptionField], Any]) -> type[msgspec.Struct]:
    """Make a record with a field for each axis; None leaves the command its own default."""
    return msgspec.defstruct(
        name, [(key, type_of(axis) | None, None) for key, axis in AXES.items()], kw_only=True
    )


_CellAxes = _axes("_CellAxes", _value_type)
_MatrixAxes = _axes("_MatrixAxes", _values_type)


class CellPattern(_CellAxes, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One value for some options: the cells to exclude, or one cell to include."""


class Matrix(_MatrixAxes, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Cells of one kind: their options, their seeds, and the expected verdict."""

    name: Name
    #: Cells left out of the product, and cells added to it.
    exclude: tuple[CellPattern, ...] = ()
    include: tuple[CellPattern, ...] = ()
    seeds: Seeds = FreshSeeds(count=1)
    expect: Expectation = "valid"
    #: expect invalid: least number of such runs of each cell.
    at_least: Annotated[int, msgspec.Meta(ge=1)] | Literal["all"] = "all"
    #: expect invalid: checkers of which one must have found the violation; empty: any.
    caught_by: tuple[str, ...] = ()
    #: Of all runs of the matrix together.
    time_budget: Duration | None = None
    #: Of one run; by default its time limit and ten minutes.
    run_timeout: Duration | None = None
    analyze: bool = False
    #: Further words for ``splitbrain test``, handed on as they are.
    arguments: tuple[str, ...] = ()


class Program(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Any other program whose exit code counts: a campaign, a bench, a script."""

    name: Name
    #: Words; ``{python}``, ``{seed}`` and ``{folder}`` are replaced.
    command: tuple[str, ...]
    timeout: Duration
    exit_code: int = 0
    seeds: Seeds = FreshSeeds(count=1)
    time_budget: Duration | None = None


class Suite(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A whole suite file."""

    name: Name
    #: Of the whole night; None: as long as it needs.
    time_budget: Duration | None = None
    jobs: Annotated[int, msgspec.Meta(ge=1, le=64)] = 1
    #: Keep all of a valid run's folder, instead of plan, schedule, faults and verdict.
    keep_valid: bool = False
    matrix: tuple[Matrix, ...] = ()
    program: tuple[Program, ...] = ()
    #: Of a suite that shows a known loss.
    known_loss: KnownLoss | None = None


def choice_of(cells: Matrix | CellPattern, axis: str) -> Any:
    """Return the value of an axis in the file; None: left out."""
    return getattr(cells, axis)


class PlannedRun(msgspec.Struct, frozen=True, kw_only=True):
    """One run or program of a night; stands in ``night.json``."""

    #: Place in the night's order, from 1.
    number: int
    is_program: bool
    matrix: str
    #: The matrix' name and the cell's distinguishing options; the ledger adds up by it.
    cell: str
    options: dict[str, str | int | float | list[str] | dict[str, str]]
    #: Words of the command, seed included; for a run after ``test``, folder apart.
    arguments: tuple[str, ...]
    seed: int
    expect: Expectation
    #: expect invalid: least number of such runs of this cell.
    at_least: int = 0
    caught_by: tuple[str, ...] = ()
    expected_exit_code: int = 0
    #: Shortest time that it can take; it is not started when less is left.
    least_s: float = 0.0
    timeout_s: float
    matrix_budget_s: float | None = None

    @property
    def folder_name(self) -> str:
        """Return the folder of its attempts below the night's; unique in the night."""
        slug = re.sub(r"[^a-z0-9]+", "-", self.matrix.lower()).strip("-")[:40]
        return f"{self.number:04d}-{slug}-{self.seed}"
