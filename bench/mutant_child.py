"""One stage for one mutant, in a process of its own: tests, or seeds of the simulation.

``python -m bench.mutant_child ORDER.json RESULT.json``, as ``bench.mutants`` starts it. The changed
tree is compiled in memory and handed to ``import`` by a finder, so the work tree is never touched
and no byte code is left behind. The other files that may be mutated go the same way, unchanged, so
that the control run tests the finder as well. A control run of seeds notes which world comes to
which statement first (``bench.mutant_reach``).

A process that uses up its processor time is stopped by the kernel (SIGXCPU), which a busy machine
cannot cause. Must never import a room that may be mutated before the finder stands.
"""

import ast
import hashlib
import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import resource
import sys
import traceback
import types
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from bench.mutant_reach import NOTE, Reach
from bench.mutant_sites import Mutant, module_of, mutated

if TYPE_CHECKING:
    import pytest

#: Address space of a mutant that never stops allocating.
_MEMORY_BYTES_MAX: Final = 8 << 30
#: Seconds in which one test must end; those of the fast stages take milliseconds.
_TEST_TIMEOUT_S: Final = 40
#: Between SIGXCPU and SIGKILL.
_GRACE_S: Final = 5
#: Exit code for an order that cannot be followed; it says nothing of the mutant.
CANNOT_RUN: Final = 70

#: By module name: the file, and the tree that is run for it.
Trees = dict[str, tuple[Path, ast.Module]]


class StageOrder(msgspec.Struct, frozen=True, kw_only=True):
    """Order for one process."""

    #: None: the control run.
    mutant: Mutant | None
    #: All files that go through the finder.
    files: tuple[str, ...]
    #: Paths for pytest; none: run seeds.
    tests: tuple[str, ...] = ()
    #: Of the worlds.
    state_machine: str = "registers"
    first_seed: int = 0
    end_seed: int = 0
    #: Hashes of the worlds before the first seed, which the mutant does not change.
    known_hashes: tuple[str, ...] = ()
    #: Processor time.
    cpu_s_max: int


class StageResult(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Result of an order."""

    #: Finder of the change; None: there was none.
    killed_by: str | None
    #: Processor time in seconds.
    cpu_s: float = 0.0
    #: Of all traces of the seeds; two programs with one digest did the same in each of them.
    traces: str = ""
    #: Hash of each world, of a control run alone.
    hashes: tuple[str, ...] = ()
    #: Place of a statement -> seed of the first world that comes there, of a control run alone.
    first_seeds: dict[str, int] | None = None


class _Finder(importlib.abc.MetaPathFinder):
    """Gives ``import`` the trees it holds, and nothing else."""

    def __init__(self, trees: Mapping[str, tuple[Path, ast.Module]], reach: Reach) -> None:
        self._trees = trees
        self._reach = reach

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None,
        target: types.ModuleType | None = None,
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname not in self._trees:
            return None
        file, tree = self._trees[fullname]
        return importlib.util.spec_from_file_location(
            fullname, file, loader=_Loader(file, tree, self._reach)
        )


class _Loader(importlib.abc.Loader):
    def __init__(self, file: Path, tree: ast.Module, reach: Reach) -> None:
        self._file = file
        self._tree = tree
        self._reach = reach

    def exec_module(self, module: types.ModuleType) -> None:
        module.__dict__[NOTE] = self._reach.fresh.add
        exec(compile(self._tree, str(self._file), "exec"), module.__dict__)  # noqa: S102


@contextmanager
def installed(
    trees: Mapping[str, tuple[Path, ast.Module]], reach: Reach | None = None
) -> Generator[None]:
    """Modules by name, each with its file and the tree that is run for it.

    None of them may have been imported; afterwards none is. ``reach`` is told of what marked trees
    run.

    Raises:
        RuntimeError: one has been imported already.
    """
    early = sorted(name for name in trees if name in sys.modules)
    if early:
        raise RuntimeError(f"{early[0]} was imported before it could be mutated")
    finder = _Finder(trees, reach or Reach())
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)
        for name in trees:
            sys.modules.pop(name, None)


def trees_of(order: StageOrder) -> Trees:
    """Return the module for ``import``.

    Raises:
        ValueError: a file is another one than the mutant was made of.
        OSError: a file cannot be read.
    """
    trees: Trees = {}
    for file in order.files:
        source = Path(file).read_text()
        is_target = order.mutant is not None and order.mutant.file == file
        tree = mutated(source, order.mutant) if is_target and order.mutant else ast.parse(source)
        trees[module_of(file)] = (Path(file).resolve(), tree)
    return trees


def perform(order: StageOrder, trees: Trees) -> StageResult:
    """Run the stage in this process, whose processor time is limited from now on."""
    resource.setrlimit(resource.RLIMIT_CPU, (order.cpu_s_max, order.cpu_s_max + _GRACE_S))
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY_BYTES_MAX, _MEMORY_BYTES_MAX))
    reach = Reach()
    if order.mutant is None and not order.tests:
        for file in order.files:
            reach.marked(trees[module_of(file)][1], file)
    with installed(trees, reach):
        try:
            for name in trees:
                importlib.import_module(name)
        # Whatever the change does to a module as it is loaded, it has been noticed.
        except Exception as error:  # noqa: BLE001
            return StageResult(killed_by=f"import: {_last_line(error)}", cpu_s=_cpu_s())
        if order.tests:
            return StageResult(killed_by=_tests(order.tests), cpu_s=_cpu_s())
        reach.ran(order.first_seed)
        return _seeds(order, reach)


class _FirstFailure:
    """A pytest plugin that remembers what failed first."""

    def __init__(self) -> None:
        self.name: str | None = None

    def pytest_runtest_logreport(self, report: "pytest.TestReport") -> None:
        if report.failed and self.name is None:
            self.name = report.nodeid

    def pytest_collectreport(self, report: "pytest.CollectReport") -> None:
        if report.failed and self.name is None:
            self.name = report.nodeid


def _tests(paths: Sequence[str]) -> str | None:
    import pytest

    first = _FirstFailure()
    code = pytest.main(
        ["-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "--tb=no",
         "-o", f"timeout={_TEST_TIMEOUT_S}",
         "-m", "not slow and not nightly and not containers and not spark and not browser", *paths],
        plugins=[first],
    )  # fmt: skip
    if code == pytest.ExitCode.OK:
        return None
    return first.name or f"pytest, exit {int(code)}"


def _seeds(order: StageOrder, reach: Reach) -> StageResult:
    from splitbrain.contracts.names import DEFAULT_SYSTEM
    from splitbrain.harness.campaign.sweep.options import SimOptions
    from splitbrain.harness.campaign.sweep.trial import try_seed

    # A world of registers is one that nobody asked to be anything else.
    named = None if order.state_machine == "registers" else order.state_machine
    trial = SimOptions(system=DEFAULT_SYSTEM, state_machine=named)
    hashes = list(order.known_hashes)
    for seed in range(order.first_seed, order.end_seed):
        result = try_seed(trial, seed, "first")
        reach.ran(seed)
        if result.crash is not None:
            defect = result.crash.strip().splitlines()[-1]
            return StageResult(killed_by=f"seed {seed}: defect: {defect}", cpu_s=_cpu_s())
        if result.failed_by:
            return StageResult(killed_by=f"seed {seed}: {result.failed_by[0]}", cpu_s=_cpu_s())
        hashes.append(result.trace_hash)
    traces = hashlib.blake2b("".join(hashes).encode(), digest_size=8).hexdigest()
    if order.mutant is not None:
        return StageResult(killed_by=None, cpu_s=_cpu_s(), traces=traces)
    return StageResult(
        killed_by=None,
        cpu_s=_cpu_s(),
        traces=traces,
        hashes=tuple(hashes),
        first_seeds=reach.first,
    )


def _last_line(error: Exception) -> str:
    return traceback.format_exception_only(error)[-1].strip()


def _cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return round(used.ru_utime + used.ru_stime, 2)


def main(arguments: Sequence[str]) -> int:
    """Do what the order says and write the result."""
    order_file, result_file = arguments
    order = msgspec.json.decode(Path(order_file).read_bytes(), type=StageOrder)
    try:
        trees = trees_of(order)
    except (OSError, ValueError) as error:
        sys.stderr.write(f"{error}\n")
        return CANNOT_RUN
    result = perform(order, trees)
    Path(result_file).write_bytes(msgspec.json.encode(result))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
