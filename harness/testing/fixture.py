"""The fixture ``splitbrain``: makes the clusters of one test, and knows where their runs are."""

import os
import re
import shlex
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

import msgspec

from splitbrain.contracts.errors import UsageError
from splitbrain.contracts.experiment import Experiment
from splitbrain.contracts.nearest import or_nearest
from splitbrain.contracts.system import System
from splitbrain.harness.run.options import TestOptions
from splitbrain.harness.testing.cluster import Cluster
from splitbrain.harness.testing.image_system import Connect, ImageSystem
from splitbrain.harness.testing.refusals import OneSentence
from splitbrain.history.json_problems import in_words
from splitbrain.nemesis.plan import NONE
from splitbrain.plugins.contract import held
from splitbrain.plugins.files import is_file
from splitbrain.runtimes import registry as runtimes
from splitbrain.systems import registry as systems

__tracebackhide__ = True  # pytest shows the test's own line

_NOT_IN_NAMES: Final = re.compile(r"[^A-Za-z0-9_.]+")
_NAME_LENGTH_MAX: Final = 80
#: Number of nodes where the test names none and the system can have it.
_NODES: Final = 3
#: Settled otherwise than by a keyword of their own.
_NOT_OPTIONS: Final = frozenset({"system", "nemesis", "time_limit_s"})


class Splitbrain:
    """Maker of one test's clusters."""

    def __init__(
        self, test: str, name: str, *, seed: int, runs: Path, runtime: str, beside: Path
    ) -> None:
        """Make nothing yet.

        Args:
            test: as pytest names it, its file included.
            name: of the test alone.
            seed: of clusters that are given no other.
            runs: folder of the run folders.
            runtime: of clusters that are given no other.
            beside: folder of the test's file, where systems of files are looked for first.
        """
        self._test, self.seed, self._beside = test, seed, beside
        self._name = _NOT_IN_NAMES.sub("-", name)[:_NAME_LENGTH_MAX].strip("-.") or "test"
        self._runs, self._runtime = runs, runtime
        self._clusters: list[Cluster] = []
        self._variable = os.environ.get(systems.VARIABLE)

    def cluster(
        self,
        system: str | type[System] | None = None,
        *,
        image: str | None = None,
        command: Sequence[str] = (),
        port: int | None = None,
        connect: Connect | None = None,
        faults: str = NONE,
        keep_data: bool = False,
        **options: Any,
    ) -> Cluster:
        """Return a cluster that a ``with`` statement starts.

        Args:
            system: name of a system, ``file.py:Class``, or a class; or else an image.
            image: with its tag; it must be there, and runs on the runtime ``docker``.
            command: program and arguments of the image's nodes; by default as the image has them.
            port: the port of the image's nodes that clients connect to.
            connect: is given a node's address and returns a function, or a context that yields one,
                which is given an operation and returns the value of its ``ok``; used for one
                operation at a time.
            faults: kinds that nodes must be equipped for, as ``--nemesis`` takes them: those that
                touch disks, clocks, processor or memory.
            keep_data: keep the nodes' data folders also when the verdict is valid.
            options: those of ``splitbrain test`` by their names: ``nodes``, ``runtime``, ``seed``,
                ``workload``, ``settings``, ``operation_timeout_s`` and so on.

        Raises:
            UsageError: something does not exist or does not fit.
        """
        with OneSentence():
            if (system is None) == (image is None):
                raise UsageError(
                    "a cluster needs a system or an image, and not both",
                    "Write splitbrain.cluster(SYSTEM) or splitbrain.cluster(image=IMAGE, ...)",
                )
            if image is not None:
                workload = str(options.get("workload") or "register")
                adapter: System = _of_image(image, command, port, connect, workload)
            else:
                if command or port is not None or connect is not None:
                    raise UsageError(
                        "command, port and connect are of an image, and a system has its own",
                        "Leave them out, or give an image",
                    )
                adapter = self._adapter(system)
            counts = adapter.node_counts
            usual: dict[str, Any] = {
                "nodes": _NODES if _NODES in counts else counts[0],
                "runtime": self._runtime,
                "seed": self.seed,
            }
            experiment = _experiment(adapter.name, faults, usual | options)
            cluster = Cluster(
                TestOptions(
                    experiment=experiment,
                    runs_folder=self._runs,
                    keep_data=keep_data,
                    schedule=(),
                ),
                adapter,
                partial(runtimes.runtime, experiment.runtime),
                name=self._name,
                driven_by=self._test,
            )
            self._clusters.append(cluster)
            return cluster

    def close(self) -> None:
        """Forget the systems of files that this test has named."""
        if self._variable is None:
            os.environ.pop(systems.VARIABLE, None)
        else:
            os.environ[systems.VARIABLE] = self._variable

    def story(self) -> str:
        """Return how the test is run again, and how its runs are seen, one line each."""
        again = shlex.join(["pytest", self._test, "--splitbrain-seed", str(self.seed)])
        lines = [f"seed {self.seed}, again: {again}"]
        for root in (cluster.root for cluster in self._clusters):
            if root is not None:
                lines.append(f"splitbrain check {shlex.quote(str(root))}")
                lines += [f"report: {page}" for page in [root / "report.html"] if page.is_file()]
        return "\n".join(lines)

    def _adapter(self, system: object) -> System:
        if isinstance(system, str):
            name = system
            if is_file(name) and (self._beside / name.partition(":")[0]).exists():
                name = str(self._beside / name)
            return systems.system(systems.admitted(name))
        if not (isinstance(system, type) and issubclass(system, System)):
            raise UsageError(
                f"{system!r} is no system",
                "Give a system's name, 'file.py:Class', or a class derived from "
                "contracts.system.System",
            )
        make: Callable[[], System] = system
        try:
            return held(make(), f"the system {system.__qualname__}")
        except TypeError as error:
            raise UsageError(
                f"the system {system.__qualname__} cannot be made without arguments: {error}",
                "Repair its class",
            ) from error


def _of_image(
    image: str, command: Sequence[str], port: int | None, connect: Connect | None, workload: str
) -> ImageSystem:
    for name, value in (("port", port), ("connect", connect)):
        if value is None:
            raise UsageError(
                f"the image {image!r} is given no {name}",
                "Give port=, where clients connect, and connect=, a function that is given the "
                "address and returns one that performs an operation",
            )
    assert port is not None
    assert connect is not None
    return ImageSystem(image, command, port, connect, workload)


def _experiment(system: str, faults: str, options: dict[str, Any]) -> Experiment:
    known = {*Experiment.__struct_fields__} - _NOT_OPTIONS
    for name in options:
        if name not in known:
            raise UsageError(
                f"a cluster has no option {name!r}", or_nearest(name, known, "options")
            )
    try:
        return msgspec.convert({"system": system, "nemesis": faults, **options}, Experiment)
    except msgspec.ValidationError as error:
        raise UsageError(
            f"an option of the cluster does not fit: {in_words(error)}",
            "`splitbrain docs pytest` shows the options",
        ) from error
