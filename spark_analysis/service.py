"""Analyses of one run folder after the other in one session.

``python -m splitbrain.spark_analysis.service DESCRIPTOR OWNER`` takes connections of the listening
socket of that number. Each asks for one analysis, with the folder's path as a JSON text on a line,
and is answered with a line: null, or a sentence why there is none. An asker that hangs up, because
it waits no longer, ends this process with all that Spark does in it, and so does the end of the
process OWNER; whoever gave the socket gives it to the next one. A broken run folder is that
analysis' problem alone.
"""

import json
import socket
import sys
import threading
from pathlib import Path
from typing import Final

from pyspark.sql import SparkSession

from splitbrain.contracts.errors import HarnessError
from splitbrain.spark_analysis.analyze import analyze
from splitbrain.spark_analysis.owned_process import end_in_order, live_with
from splitbrain.spark_analysis.session import spark_session

#: A fresh process follows: nothing that a session keeps of each may add up over a night.
ANALYSES_MAX: Final = 100


def main(arguments: list[str]) -> int:
    """Serve until it is time for a fresh process; return the exit code."""
    descriptor, owner = map(int, arguments)
    live_with(owner)
    with socket.socket(fileno=descriptor) as listener:
        try:
            with spark_session() as session:
                for _ in range(ANALYSES_MAX):
                    _serve(listener, session)
        except HarnessError as error:
            # Without a session nothing can be done for whoever comes first.
            _serve(listener, error)
            return error.exit_code
    return 0


def _serve(listener: socket.socket, session: SparkSession | HarnessError) -> None:
    connection, _ = listener.accept()
    with connection, connection.makefile("rb") as questions:
        line = questions.readline()
        if not line.endswith(b"\n"):
            return
        answered = threading.Event()
        threading.Thread(target=_watch, args=(connection, answered), daemon=True).start()
        problem = problem_of(Path(json.loads(line)), session)
        answered.set()
        # It may have hung up at the last moment.
        try:
            connection.sendall(json.dumps(problem).encode() + b"\n")
            connection.shutdown(socket.SHUT_RDWR)
        except OSError:
            return


def _watch(connection: socket.socket, answered: threading.Event) -> None:
    """End this process when the asker hangs up before its answer."""
    try:
        left = not connection.recv(1)
    except OSError:
        left = True
    if left and not answered.is_set():
        end_in_order()


def problem_of(run_folder: Path, session: SparkSession | HarnessError | None = None) -> str | None:
    """Analyse a run; return why that was not possible, as one sentence."""
    try:
        if isinstance(session, HarnessError):
            raise session
        analyze(run_folder, session)
    except HarnessError as error:
        return str(error)
    except Exception as error:  # noqa: BLE001 - a traceback would end with 1, which is a verdict
        return (
            f"could not analyse the run ({run_folder}): {type(error).__name__}: {error}. "
            "This is a defect of splitbrain; please report it with the run folder."
        )
    return None


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
