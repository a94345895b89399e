"""Reader of a suite file that refuses errors in it before anything starts.

Every refusal is one sentence that names the file, the place in it and the next step. Each cell is
also checked against the known systems, workloads, plans and bugs, so that a misspelt name is
reported now and not at three in the morning. Starts nothing.
"""

import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, cast

import msgspec

from splitbrain.contracts.errors import UsageError
from splitbrain.contracts.experiment import Experiment
from splitbrain.contracts.explanation import KnownLoss
from splitbrain.contracts.names import DEFAULT_SYSTEM
from splitbrain.contracts.nearest import or_nearest
from splitbrain.contracts.runtime import Runtime
from splitbrain.harness.campaign.gate.toml_file import TomlFile
from splitbrain.harness.campaign.suite.cells import planned_runs
from splitbrain.harness.campaign.suite.definition import (
    AXES,
    CellPattern,
    FreshSeeds,
    Matrix,
    PlannedRun,
    Program,
    Suite,
)
from splitbrain.harness.run.options import TestOptions, prepare
from splitbrain.history.spark_extra import require_spark
from splitbrain.plugins.files import is_file
from splitbrain.systems.registry import admitted

_PLACED = re.compile(r"^(.+?)(?: - at `(.+)`)?$")
_UNKNOWN_FIELD = re.compile(r"^Object contains unknown field `(?P<field>.+?)`$")
_OPTION = re.compile(r"--(?P<name>[a-z]+(?:-[a-z]+)*)")
_RECORDS: dict[str, type[msgspec.Struct]] = {
    "": Suite,
    "matrix": Matrix,
    "program": Program,
    "known_loss": KnownLoss,
    "seeds": FreshSeeds,
    "include": CellPattern,
    "exclude": CellPattern,
}
_PLAN_FILE_SUFFIXES = (".json", ".toml")
_NEXT = "Correct the file; `splitbrain docs suite` says what may stand in it"


class SuiteFile(msgspec.Struct, frozen=True):
    """A suite and its origin."""

    path: Path
    suite: Suite
    digest: str


def read_suite(path: Path) -> SuiteFile:
    """Read a suite file, with plan files relative to it; raise UsageError for anything wrong."""
    file = TomlFile(path, "suite file", _NEXT)
    try:
        suite = msgspec.convert(_found_from_here(file.data, path.parent), Suite)
    except msgspec.ValidationError as error:
        raise _refusal(path, str(error), file.data) from error
    names = [part.name for part in (*suite.matrix, *suite.program)]
    if not names:
        raise UsageError(f"the suite file {path} has no [[matrix]] and no [[program]]", _NEXT)
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        problem = f"the suite file {path} has two parts named {repeated[0]!r}"
        raise UsageError(problem, "Give each its own name")
    if any(matrix.analyze for matrix in suite.matrix):
        require_spark("A suite with analyze = true")
    read = SuiteFile(path, suite, file.digest)
    plan(read, 0)
    return read


def plan(file: SuiteFile, night_seed: int) -> tuple[PlannedRun, ...]:
    """Return the runs of one night; raise UsageError if a part of the suite makes no sense."""
    try:
        return planned_runs(file.suite, night_seed)
    except ValueError as error:
        raise UsageError(f"the suite file {file.path}: {error}", _NEXT) from error


def check_cells(path: Path, runs: Iterable[PlannedRun]) -> None:
    """Check a run of each cell by the registries alone; raise UsageError if it cannot be run."""
    from splitbrain.runtimes.registry import runtime_names
    from splitbrain.systems import registry as systems

    checked: set[str] = set()
    for run in runs:
        if run.is_program or run.cell in checked:
            continue
        checked.add(run.cell)
        experiment = experiment_of(run)
        try:
            if (runtime := experiment.runtime) not in runtime_names():
                next_step = or_nearest(runtime, runtime_names(), "runtimes")
                raise UsageError(f"there is no runtime {runtime!r}", next_step)
            system = systems.system(experiment.system)
            prepare(TestOptions(experiment=experiment), system, _no_runtime)
        except _CheckedError:
            continue
        except UsageError as error:
            problem = f"{run.cell!r} cannot be run: {_by_keys(error.problem)}"
            next_step = _by_keys(error.next_step)
            raise UsageError(f"the suite file {path}: {problem}", next_step) from error


def _by_keys(text: str) -> str:
    """Replace the command line's options in a sentence by the suite's keys for them."""

    def key(option: re.Match[str]) -> str:
        name = option["name"].replace("-", "_")
        return name if name in AXES else option[0]

    return _OPTION.sub(key, text)


class _CheckedError(Exception):
    """All checks that need no runtime have passed."""


def _no_runtime() -> Runtime:
    raise _CheckedError


def experiment_of(run: PlannedRun) -> Experiment:
    """Return the experiment of a night's run."""
    given = {AXES[name].name: value for name, value in run.options.items()}
    return msgspec.convert({"system": DEFAULT_SYSTEM, **given, "seed": run.seed}, Experiment)


def _found_from_here(data: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Return the data with the files that it names beside itself named as they are found from here.

    These are plan files, and those of systems, which are known by their names from now on.
    """
    readings: dict[str, Callable[[str], str]] = {
        "nemesis": lambda text: str(folder / text) if text.endswith(_PLAN_FILE_SUFFIXES) else text,
        "system": lambda text: admitted(str(folder / text)) if is_file(text) else text,
    }

    def read(value: Any, reading: Callable[[str], str]) -> Any:
        if isinstance(value, list):
            return [read(part, reading) for part in cast("list[Any]", value)]
        return reading(value) if isinstance(value, str) else value

    def changed(part: Any) -> Any:
        if not isinstance(part, dict):
            return part
        table = cast("dict[str, Any]", part)
        replaced = {key: read(table[key], how) for key, how in readings.items() if key in table}
        for patterns in ("include", "exclude"):
            if isinstance(table.get(patterns), list):
                replaced[patterns] = [changed(pattern) for pattern in table[patterns]]
        return {**table, **replaced}

    matrices = data.get("matrix")
    if not isinstance(matrices, list):
        return data
    return {**data, "matrix": [changed(part) for part in cast("list[Any]", matrices)]}


def _refusal(path: Path, message: str, data: dict[str, Any]) -> UsageError:
    """Turn the decoder's message into a sentence that names the place in the user's words."""
    problem, at = _PLACED.findall(message)[0]
    place, record = _place(at, data)
    next_step = _NEXT
    if unknown := _UNKNOWN_FIELD.match(problem):
        field = unknown["field"]
        problem = f"there is no field {field!r}"
        next_step = or_nearest(field, record.__struct_fields__, "fields")
    if problem.startswith("Expected `str` matching regex"):
        problem = (
            "a name is letters, digits, spaces and . _ -, at most 60 of them, the first a letter "
            "or a digit"
        )
    problem = problem[:1].lower() + problem[1:]
    return UsageError(f"the suite file {path}{place}: {problem}", next_step)


def _place(at: str, data: dict[str, Any]) -> tuple[str, type[msgspec.Struct]]:
    """Return ``, matrix 2 ('sets'), seeds`` for ``$.matrix[1].seeds``, and its record type."""
    steps: list[str] = []
    record: type[msgspec.Struct] = Suite
    value: Any = data
    for name, index in re.findall(r"\.(\w+)(?:\[(\d+)\])?", at):
        record = _RECORDS.get(name, record)
        value = cast("dict[str, Any]", value).get(name) if isinstance(value, dict) else None
        step = name
        if index and isinstance(value, list):
            value = cast("list[Any]", value)[int(index)]
            step += f" {int(index) + 1}"
            if isinstance(value, dict) and "name" in value:
                step += f" ({cast('dict[str, Any]', value)['name']!r})"
        steps.append(step)
    return "".join(f", {step}" for step in steps), record
