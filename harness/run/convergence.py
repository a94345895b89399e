"""Waits for the cluster as a whole: ready to serve, and at the end of one mind."""

from collections.abc import Callable

from splitbrain.contracts.errors import HarnessError
from splitbrain.contracts.names import NodeName
from splitbrain.contracts.runtime import Runtime
from splitbrain.contracts.system import System
from splitbrain.harness.console.stop import Stop
from splitbrain.plugins.blame import authors_place

#: After Ctrl-C the user does not want to wait long.
INTERRUPTED_PATIENCE_S = 5.0
_INTERVAL_S = 0.1
#: Of a node that exited at its start, shown with the error.
_LAST_LINES = 5


def await_ready(system: System, runtime: Runtime, patience_s: float, stop: Stop) -> None:
    """Wait until the cluster can serve.

    Raises:
        HarnessError: it could not in time, or a node has exited; the text says what was missing
            and shows the last lines that the nodes concerned printed.
    """

    def look() -> NodeName | None:
        """None when ready, or a node that ended for good: there is no use in waiting longer."""
        try:
            system.ready(runtime)
        except Exception:
            for node in runtime.nodes():
                if runtime.status(node) == "exited":
                    if not system.starts_again(node):
                        return node
                    runtime.start(node)
            raise
        return None

    waiting = ("wait for the cluster to become ready", f"system {system.name} on {runtime.name}")
    try:
        exited: NodeName | None = stop.retrying(patience_s, _INTERVAL_S, Exception)(look)
    except Exception as error:
        if stop.is_set():
            return
        last_words = "; ".join(_last_words(runtime, node, 1) for node in runtime.nodes())
        where = "Look at the nodes' output in the run folder"
        told = error.next_step if isinstance(error, HarnessError) else ""
        # An adapter's own "not yet" often says where to look.
        next_step = last_words if "output in the run folder" in told else f"{where}; {last_words}"
        raise HarnessError(
            *waiting, f"after {patience_s:g} s: {_said(error)}", next_step
        ) from error
    if exited is not None:
        last_words = _last_words(runtime, exited, _LAST_LINES)
        next_step = f"Look at its output in the run folder, nodes/{exited}/; {last_words}"
        problem = f"{exited} exited with code {runtime.exit_code(exited)}"
        raise HarnessError(*waiting, problem, next_step)


def _said(error: Exception) -> str:
    """Return the text of an adapter's "not yet", with its place where the adapter may be wrong."""
    place = None if isinstance(error, HarnessError) else authors_place(error)
    return str(error) if place is None else f"{error} ({type(error).__name__} in {place})"


def _last_words(runtime: Runtime, node: NodeName, lines: int) -> str:
    """The last lines that a node printed, each on a line of its own where there are several."""
    try:
        said = runtime.log_tail(node, lines).strip()
    except HarnessError as error:
        return f"the last words of {node} cannot be had ({error.problem})"
    if not said:
        return f"{node} printed nothing"
    if "\n" not in said:
        return f"{node} printed last: {said}"
    return f"{node} printed last:\n" + "\n".join(f"  {line}" for line in said.splitlines())


def await_recovered(recovered: Callable[[], None], patience_s: float, stop: Stop) -> str | None:
    """Wait until all nodes take part again; what is missing, or None, also if the run is to end."""
    try:
        stop.retrying(patience_s, _INTERVAL_S, Exception)(recovered)
    except Exception as error:  # noqa: BLE001 - any is the adapter's "not yet"
        return None if stop.is_set() else _said(error)
    return None


def await_converged(
    system: System,
    runtime: Runtime,
    patience_s: float,
    stop: Stop,
    interrupted_s: float = INTERRUPTED_PATIENCE_S,
) -> str | None:
    """Wait until all nodes hold the same log end; what is missing, or None.

    That they do not converge is no failure of the harness: it is a finding about the system.
    Once the run is to end, ``interrupted_s`` more are waited at most, since logs are read
    afterwards; not even these when the user hurries.
    """
    try:
        if not stop.is_set():
            # Any exception of the adapter is its way of saying "not yet".
            stop.retrying(patience_s, _INTERVAL_S, Exception)(lambda: system.converged(runtime))
            return None
    except Exception as error:  # noqa: BLE001 - the adapter's "not yet"
        if not stop.is_set():
            return f"after {patience_s:g} s: {_said(error)}"
    waited_s = min(patience_s, interrupted_s)
    try:
        stop.haste.retrying(waited_s, _INTERVAL_S, Exception)(lambda: system.converged(runtime))
    except Exception as error:  # noqa: BLE001 - as above
        return f"after {waited_s:g} s: {_said(error)}"
    return None
