"""Processes of nodes on this machine: ended in order, starved of processor and memory.

Limits take a control group for each node, which an ordinary user hardly ever may make: they are
refused then, with the reason.
"""

import errno
import signal
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from tenacity import Retrying, retry_if_result, stop_after_delay, wait_fixed

from splitbrain.contracts.arms import MemoryState
from splitbrain.contracts.errors import CapabilityError, HarnessError
from splitbrain.contracts.names import NodeName
from splitbrain.runtimes.control_groups import Controller, NodeGroups, possible_bases

_INTERVAL_S: Final = 0.02
#: A process that the kernel has ended is gone within this time.
_ENDING_PATIENCE_S: Final = 5.0
_BYTES_PER_MIB: Final = 1 << 20
#: Asks the host: action for the error, node, method, further arguments.
Ask = Callable[..., Any]


class LocalProcesses:
    """Implements :class:`contracts.arms.ProcessArm` for processes below one host process."""

    def __init__(
        self, ask: Ask, bases: Callable[[], Mapping[Controller, Path]] = possible_bases
    ) -> None:
        self._ask = ask
        self._bases = bases
        self._groups: NodeGroups | None = None
        self._nodes: tuple[NodeName, ...] = ()
        #: Of nodes with a memory limit: what the kernel had ended for want of it before.
        self._kills_before: dict[NodeName, int] = {}

    def make_groups(self, nodes: Sequence[NodeName]) -> Mapping[NodeName, tuple[str, ...]]:
        """Prepare limits of these nodes; what each node's processes must enter."""
        bases = self._bases()
        self._nodes = tuple(nodes)
        if not bases or not nodes:
            return {}
        try:
            self._groups = NodeGroups(nodes, bases)
        except OSError as error:
            raise HarnessError(
                "make the nodes' control groups",
                str(error.filename),
                error.strerror or str(error),
                "Make room for control groups",
            ) from error
        return {node: self.folders(node) for node in nodes}

    def folders(self, node: NodeName) -> tuple[str, ...]:
        """Return the control groups of a node that was prepared; none where there are none."""
        return () if self._groups is None else self._groups.folders(node)

    def remove_groups(self) -> None:
        """Once the nodes' processes are gone. Safe to call twice."""
        groups, self._groups = self._groups, None
        if groups is not None:
            groups.remove()

    def terminate(self, node: NodeName, patience_s: float) -> int | None:
        """SIGTERM for the node's first process; its exit code, None where it did not end in time.

        One that has ended before tells how.
        """
        self._ask(f"terminate {node}", node, "signal", int(signal.SIGTERM))
        return self._await_exit(node, patience_s)

    def _await_exit(self, node: NodeName, patience_s: float) -> int | None:
        return Retrying(
            retry=retry_if_result(lambda code: code is None),
            stop=stop_after_delay(patience_s),
            wait=wait_fixed(_INTERVAL_S),
            retry_error_callback=lambda _: None,
        )(self._ask, f"look at {node}", node, "exit_code")

    def throttle(self, node: NodeName, cpu_share: float) -> None:
        """Let all of the node's processes have this share of one processor; also once restarted."""
        self._limit_cpu(f"throttle {node}", node, cpu_share)

    def unthrottle(self, node: NodeName) -> None:
        """Let the node have what it can get."""
        self._limit_cpu(f"end the throttle of {node}", node, None)

    def _limit_cpu(self, action: str, node: NodeName, share: float | None) -> None:
        groups = self._limited(action, "cpu")
        self._do(action, node, lambda: groups.limit_cpu(node, share))

    def throttled(self, node: NodeName) -> float | None:
        """Return the share that the kernel enforces now; None: no limit, or no control group."""
        groups = self._groups
        if groups is None or "cpu" not in self._bases():
            return None
        return self._do(f"look at {node}", node, lambda: groups.cpu_share(node))

    def limit_memory(self, node: NodeName, limit_mib: int) -> None:
        """Let the node have so much memory and no swap; also once restarted.

        Cgroup v1 takes no memory away that is in use: a node that uses more already is killed here,
        as the kernel kills one that asks for more.
        """
        action, size = f"limit the memory of {node}", limit_mib * _BYTES_PER_MIB
        groups = self._limited(action, "memory")
        if node not in self._kills_before:
            self._kills_before[node] = self._do(action, node, lambda: groups.memory_kills(node))
        try:
            groups.limit_memory(node, size)
        except OSError as error:
            if error.errno == errno.EBUSY:
                self._ask(action, node, "kill")
            self._do(action, node, lambda: groups.limit_memory(node, size))

    def unlimit_memory(self, node: NodeName) -> None:
        """Let the node have what it can get.

        Returns when nobody whom the kernel has ended under the limit is still on the way out, so
        that a start after it finds the node as it is.
        """
        action = f"end the memory limit of {node}"
        groups = self._limited(action, "memory")
        self._do(action, node, lambda: groups.limit_memory(node, None))
        if self.memory(node).was_ended:
            self._await_exit(node, _ENDING_PATIENCE_S)
        self._kills_before.pop(node, None)

    def memory(self, node: NodeName) -> MemoryState:
        """Return the limits in force, and whether the kernel has ended a process since."""
        groups = self._groups
        if groups is None or "memory" not in self._bases():
            return MemoryState(None, was_ended=False)
        action = f"look at {node}"
        size: int | None = self._do(action, node, lambda: groups.memory_limit(node))
        kills: int = self._do(action, node, lambda: groups.memory_kills(node))
        return MemoryState(
            limit_mib=None if size is None else size / _BYTES_PER_MIB,
            was_ended=kills > self._kills_before.get(node, kills),
        )

    def heal_all(self) -> None:
        """Undo all limits."""
        if self._groups is None:
            return
        for node in self._nodes:
            for controller in self._bases():
                (self.unthrottle if controller == "cpu" else self.unlimit_memory)(node)

    def _limited(self, action: str, controller: Controller) -> NodeGroups:
        if controller not in self._bases():
            problem = f"this user cannot make a control group for {controller} on this machine"
            next_step = "Run it as root, use --runtime docker, or leave this fault out of the plan"
        elif self._groups is None:
            problem = "these nodes were deployed without control groups of their own"
            next_step = "Plans with cpu and memory faults deploy them so (DeploymentSpec.limits)"
        else:
            return self._groups
        raise CapabilityError(action, "runtime local", problem, next_step)

    def _do(self, action: str, node: NodeName, act: Callable[[], Any]) -> Any:
        try:
            return act()
        except OSError as error:
            raise HarnessError(
                action,
                node,
                f"{error.filename}: {error.strerror}",
                "`splitbrain doctor` says what works here",
            ) from error
