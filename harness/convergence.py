"""Waits for the cluster as a whole: ready to serve, and at the end of one mind."""

from contracts.errors import HarnessError
from contracts.names import NodeName
from contracts.runtime import Runtime
from contracts.system import System
from harness.stop import Stop

READY_PATIENCE_S = 60.0
CONVERGED_PATIENCE_S = 30.0
#: After Ctrl-C the user does not want to wait long.
INTERRUPTED_PATIENCE_S = 5.0
_INTERVAL_S = 0.1


def await_ready(system: System, runtime: Runtime, patience_s: float, stop: Stop) -> None:
    """Wait until the cluster can serve.

    Raises:
        HarnessError: it could not in time, or a node has exited; the text says what was missing.
    """

    def look() -> NodeName | None:
        """None when ready, or a node that ended: then there is no use in waiting longer."""
        try:
            system.ready(runtime)
        except Exception:
            for node in runtime.nodes():
                if runtime.status(node) == "exited":
                    return node
            raise
        return None

    try:
        exited: NodeName | None = stop.retrying(patience_s, _INTERVAL_S, Exception)(look)
    except Exception as error:
        if stop.is_set():
            return
        raise HarnessError(
            "wait for the cluster to become ready",
            f"system {system.name} on {runtime.name}",
            f"after {patience_s:g} s: {error}",
            "Look at the nodes' output in the run folder.",
        ) from error
    if exited is not None:
        last = runtime.log_tail(exited, 1).strip() or "it printed nothing"
        raise HarnessError(
            "wait for the cluster to become ready",
            f"system {system.name} on {runtime.name}",
            f"{exited} exited with code {runtime.exit_code(exited)}, saying: {last}",
            f"Look at its output in the run folder, nodes/{exited}/.",
        )


def await_converged(system: System, runtime: Runtime, patience_s: float) -> str | None:
    """Wait until all nodes hold the same log end; what is missing, or None.

    That they do not converge is no failure of the harness: it is a finding about the system.
    """
    # What the adapter raises is its way of saying "not yet", whatever its class; and a stop of
    # the run must not shorten this, since logs are read afterwards.
    try:
        Stop().retrying(patience_s, _INTERVAL_S, Exception)(lambda: system.converged(runtime))
    except Exception as error:  # noqa: BLE001 - the adapter's "not yet"
        return f"after {patience_s:g} s: {error}"
    return None
