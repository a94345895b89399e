"""From what a test asks for to a fault of its run, numbered and on record."""

import random
import threading
from collections.abc import Set as AbstractSet
from typing import Any, Final

import msgspec

from splitbrain.contracts.errors import UsageError
from splitbrain.contracts.fault import Fault
from splitbrain.contracts.runtime import Capability
from splitbrain.harness.run.options import EQUIPMENT, PreparedTest, refuse_faults
from splitbrain.harness.run.stage import Stage
from splitbrain.history.json_problems import in_words
from splitbrain.nemesis.kinds import fault_kind
from splitbrain.nemesis.plan import needs
from splitbrain.nemesis.plan_file import FileFault, from_file_faults
from splitbrain.nemesis.targets import LEADER, random_target

__tracebackhide__ = True  # pytest shows the test's own line

_WEEK_MS: Final = 7 * 24 * 3600 * 1000
_DRAWS: Final = 1 << 32


class FaultPlanner:
    """Faults of one run, in the order in which its test asks for them."""

    def __init__(
        self, test: PreparedTest, stage: Stage, equipment: AbstractSet[Capability]
    ) -> None:
        """``equipment``: what the nodes were equipped for; moments of faults count from now on."""
        self._test, self._stage, self._equipment = test, stage, equipment
        self._draws = random.Random(test.sub_seeds["nemesis"])
        self._start = stage.clock.now()
        #: One fault at a time gets its number and its draw.
        self._numbering = threading.Lock()
        self._count = 0

    def planned(self, kind: str, on: str | None, seconds: float, options: dict[str, Any]) -> Fault:
        """Return the next fault; arguments as of ``Cluster.fault``.

        Raises:
            UsageError, CapabilityError: it cannot be.
        """
        test, stage = self._test, self._stage
        if on is None:
            usual = fault_kind(kind).first_target
            on = random_target(1) if usual == LEADER and not test.system.names_leaders else usual
        wanted = {"kind": kind, "target": on, "at_ms": 0, "options": options}
        try:
            file_fault = msgspec.convert({**wanted, "duration_ms": seconds}, FileFault)
        except msgspec.ValidationError as error:
            raise UsageError(
                f"the fault {kind!r} cannot be: {in_words(error)}", "Give its seconds as a number"
            ) from error
        file_fault = msgspec.structs.replace(file_fault, duration_ms=1000 * file_fault.duration_ms)
        (fault,) = from_file_faults((file_fault,), test.nodes, _WEEK_MS, observers=test.observers)
        refuse_faults((fault,), test.system, test.runtime)
        if lacking := sorted((needs((fault,)) & EQUIPMENT) - self._equipment):
            raise UsageError(
                f"the nodes were not equipped for the fault {kind!r} ({', '.join(lacking)}) when "
                "they were started",
                f"Say so beforehand: cluster(..., faults={kind!r})",
            )
        with self._numbering:
            at_us, draw = (stage.clock.now() - self._start) // 1000, self._draws.randrange(_DRAWS)
            fault = msgspec.structs.replace(fault, index=self._count, at_us=at_us, draw=draw)
            self._count += 1
            stage.plan_fault(fault)
        return fault
