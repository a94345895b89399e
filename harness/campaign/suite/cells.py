"""Planned runs of one night, from a suite: cells, seeds, order; pure.

A night that is cut off must still be worth something: planted bugs come first, so that it is known
early whether the night has teeth; then every cell once, then every cell again with its next seed.
Source: issue 4, item 8.
"""

import itertools
import shlex
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import Any, cast

import msgspec

from splitbrain.harness.campaign.suite.definition import (
    AXES,
    RUN_OVERHEAD_S,
    CellPattern,
    FreshSeeds,
    Matrix,
    PlannedRun,
    Program,
    Seeds,
    Suite,
    choice_of,
)
from splitbrain.history.durations import positive_seconds_of, seconds_of
from splitbrain.history.plan import sub_seed
from splitbrain.history.seeds import WRITE_SEEDS, read_seeds

#: Fresh seeds lie below it: easy to read aloud.
_FRESH_SEED_END = 1_000_000
_SEEDS_MAX = 100_000

Cell = dict[str, Any]


def planned_runs(suite: Suite, night_seed: int) -> tuple[PlannedRun, ...]:
    """Return all runs of one night; raise ValueError, naming a part that makes no sense."""
    lanes: list[list[PlannedRun]] = []
    for matrix in suite.matrix:
        with _naming(f"matrix {matrix.name!r}"):
            lanes += _lanes(suite, matrix, night_seed)
    for program in suite.program:
        with _naming(f"program {program.name!r}"):
            lanes.append(_repeat(suite, program, night_seed))
    planted = [lane for lane in lanes if lane[0].expect == "invalid"]
    others = [lane for lane in lanes if lane[0].expect == "valid"]
    ordered = [*_round_robin(planted), *_round_robin(others)]
    return tuple(
        msgspec.structs.replace(run, number=number) for number, run in enumerate(ordered, start=1)
    )


def cells_of(matrix: Matrix) -> list[Cell]:
    """Return the lists' product minus exclusions, plus inclusions; raise ValueError if wrong."""
    written = {name: choice_of(matrix, name) for name in AXES}
    given = {name: _values(name, part) for name, part in written.items() if part is not None}
    for name, values in given.items():
        if not values:
            raise ValueError(f"the list {name} is empty; leave it out or name a value")
    cells = [dict(zip(given, values, strict=True)) for values in itertools.product(*given.values())]
    for number, pattern in enumerate(matrix.exclude, start=1):
        left = [cell for cell in cells if not _matches(cell, pattern)]
        if len(left) == len(cells):
            raise ValueError(f"exclude number {number} meets no cell; correct or remove it")
        cells = left
    first = {name: values[0] for name, values in given.items()}
    cells = cells + [{**first, **_values_of(pattern)} for pattern in matrix.include]
    if not cells:
        raise ValueError("no cell is left; exclude less")
    distinct = {msgspec.json.encode(cell, order="sorted") for cell in cells}
    if len(distinct) < len(cells):
        raise ValueError("the same cell stands in it twice; remove the repeated value")
    return cells


def cell_name(matrix: Matrix, cell: Cell, cells: Sequence[Cell]) -> str:
    """Return the matrix' name, and the options in which its cells differ."""
    differing = [
        f"{name}={_text(cell[name])}"
        for name in AXES
        if name in cell and any(other.get(name) != cell[name] for other in cells)
    ]
    return f"{matrix.name}: {' '.join(differing)}" if differing else matrix.name


def seeds_of(seeds: Seeds, night_seed: int, purpose: str) -> list[int]:
    """Return the seeds of one cell; raise ValueError if they are none, or not distinct.

    Fresh ones are drawn from ``night_seed`` and ``purpose``.
    """
    if isinstance(seeds, FreshSeeds):
        return _fresh(seeds.count, night_seed, purpose)
    if isinstance(seeds, str):
        try:
            numbers = read_seeds(seeds)
        except ValueError as error:
            raise ValueError(f"seeds {error}. {WRITE_SEEDS}") from error
    else:
        numbers = (seeds,) if isinstance(seeds, int) else seeds
    count = len(numbers)
    if not numbers:
        raise ValueError("seeds names no seed; a range ends before its second number")
    if count > _SEEDS_MAX:
        raise ValueError(f"seeds names {count} seeds, at most {_SEEDS_MAX} are run in a night")
    if min(numbers) < 0 or len(set(numbers)) < count:
        raise ValueError("seeds must be distinct numbers from 0 up")
    return list(numbers)


def _fresh(count: int, night_seed: int, purpose: str) -> list[int]:
    if count > _SEEDS_MAX:
        raise ValueError(f"seeds.count is {count}, at most {_SEEDS_MAX} are run in a night")
    drawn: dict[int, None] = {}
    for number in itertools.count():
        drawn[sub_seed(night_seed, f"{purpose}/{number}") % _FRESH_SEED_END] = None
        if len(drawn) == count:
            return list(drawn)
    raise AssertionError  # the count above never ends


def _lanes(suite: Suite, matrix: Matrix, night_seed: int) -> list[list[PlannedRun]]:
    if matrix.expect == "valid" and (matrix.at_least != "all" or matrix.caught_by):
        raise ValueError("at_least and caught_by belong to expect = 'invalid'")
    cells = cells_of(matrix)
    lanes: list[list[PlannedRun]] = []
    for cell in cells:
        name = cell_name(matrix, cell, cells)
        seeds = seeds_of(matrix.seeds, night_seed, f"{suite.name}/{name}")
        at_least = len(seeds) if matrix.at_least == "all" else matrix.at_least
        if at_least > len(seeds):
            raise ValueError(f"at_least is {at_least}, but each cell has {len(seeds)} seeds only")
        limit_s = float(cell.get("time_limit", AXES["time_limit"].default))
        timeout_s = _seconds("run_timeout", matrix.run_timeout) or limit_s + RUN_OVERHEAD_S
        run = PlannedRun(
            number=0,
            is_program=False,
            matrix=matrix.name,
            cell=name,
            options=cell,
            arguments=(),
            seed=0,
            expect=matrix.expect,
            at_least=at_least if matrix.expect == "invalid" else 0,
            caught_by=matrix.caught_by,
            least_s=limit_s,
            timeout_s=timeout_s,
            matrix_budget_s=_seconds("time_budget", matrix.time_budget),
        )
        lanes.append(
            [
                msgspec.structs.replace(run, seed=seed, arguments=_arguments(matrix, cell, seed))
                for seed in seeds
            ]
        )
    return lanes


def _repeat(suite: Suite, program: Program, night_seed: int) -> list[PlannedRun]:
    if not program.command:
        raise ValueError("command is empty; name the program and its arguments")
    timeout_s = positive_seconds_of(program.timeout)
    return [
        PlannedRun(
            number=0,
            is_program=True,
            matrix=program.name,
            cell=program.name,
            options={"command": shlex.join(program.command)},
            arguments=program.command,
            seed=seed,
            expect="valid",
            expected_exit_code=program.exit_code,
            timeout_s=timeout_s,
            matrix_budget_s=_seconds("time_budget", program.time_budget),
        )
        for seed in seeds_of(program.seeds, night_seed, f"{suite.name}/{program.name}")
    ]


def _round_robin(lanes: Sequence[Sequence[PlannedRun]]) -> list[PlannedRun]:
    return [run for turn in itertools.zip_longest(*lanes) for run in turn if run is not None]


def _arguments(matrix: Matrix, cell: Cell, seed: int) -> tuple[str, ...]:
    options = [word for name, value in cell.items() for word in AXES[name].words(value)]
    options += ["--seed", str(seed), "--analyze" if matrix.analyze else "--no-analyze"]
    return (*options, *matrix.arguments)


def _values(name: str, written: Any) -> list[Any]:
    values = cast("tuple[Any, ...]", written) if isinstance(written, tuple) else [written]
    return [_value(name, value) for value in values]


def _value(name: str, written: Any) -> Any:
    if isinstance(written, dict):
        pairs = cast("dict[str, Any]", written)
        return {key: _text(value) for key, value in pairs.items()}
    if AXES[name].is_repeatable:
        return [written] if isinstance(written, str) else list(written)
    if AXES[name].is_duration:
        with _naming(name):
            return seconds_of(written)
    return written


def _values_of(pattern: CellPattern) -> Cell:
    return {
        name: _value(name, chosen)
        for name in AXES
        if (chosen := choice_of(pattern, name)) is not None
    }


def _matches(cell: Cell, pattern: CellPattern) -> bool:
    return all(cell.get(name) == value for name, value in _values_of(pattern).items())


def _seconds(field: str, duration: Any) -> float | None:
    with _naming(field):
        return None if duration is None else positive_seconds_of(duration)


@contextmanager
def _naming(part: str) -> Generator[None]:
    """Begin the sentence of a ``ValueError`` with the part of the suite that it is about."""
    try:
        yield
    except ValueError as error:
        raise ValueError(f"{part}: {error}") from error


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return f"{value:g}"
    if isinstance(value, dict):
        return ",".join(f"{key}={part}" for key, part in cast("dict[str, str]", value).items())
    if isinstance(value, list):
        return "+".join(cast("list[str]", value))
    return str(value)
