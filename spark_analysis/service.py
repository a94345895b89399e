"""Questions one after the other in one session: analyses of runs, looks at lakes, figures of gates.

``python -m splitbrain.spark_analysis.service DESCRIPTOR [RUN]`` takes connections of the listening
socket of that number. Each asks one question, a line of JSON: the name of a module, and the path
that it would be given in a process of its own. It is answered with a line: the exit code that the
module would have, its answer, and why there is none. An asker that hangs up, because it waits no
longer, ends this process with all that Spark does in it; whoever gave the socket gives it to the
next one. A broken run folder is that question's problem alone. Of a run that still goes on, RUN, it
carries out all jobs while the nodes start, and once the clients are through, until the first
question comes: whatever by then needs no second look is part of that answer
(``spark_analysis.ahead``).
"""

import contextlib
import json
import os
import select
import socket
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Final

from pyspark.sql import SparkSession

from splitbrain.contracts.analysis.across import AcrossRequest
from splitbrain.contracts.distribution import PACKAGE
from splitbrain.contracts.errors import HarnessError
from splitbrain.contracts.figure import FiguresRequest
from splitbrain.history.border import open_in_place
from splitbrain.history.course import PhaseName, read_phases
from splitbrain.history.run_folder import RunFolder
from splitbrain.spark_analysis import across_process, gate_process
from splitbrain.spark_analysis.ahead import Ahead, work_ahead
from splitbrain.spark_analysis.analyze import Ready, jobs_line, problem_of
from splitbrain.spark_analysis.owned_process import answer_in, end_in_order
from splitbrain.spark_analysis.session import spark_session

#: A fresh process follows: nothing that a session keeps of each may add up over a night.
QUESTIONS_MAX: Final = 100
#: Between two looks whether a run's clients are through.
_LOOK_S: Final = 0.2
_ROOM: Final = f"{PACKAGE}.spark_analysis"


def main(arguments: list[str]) -> int:
    """Serve until it is time for a fresh process; return the exit code."""
    with socket.socket(fileno=int(arguments[0])) as listener:
        try:
            with spark_session() as session:
                for run in arguments[1:]:
                    _serve_first(Path(run), session, listener)
                for _ in range(QUESTIONS_MAX):
                    _serve(listener, session)
        except HarnessError as error:
            # Without a session nothing can be done for whoever comes first.
            _serve(listener, error)
            return error.exit_code
    return 0


def _serve_first(run_folder: Path, session: SparkSession, listener: socket.socket) -> None:
    """Work ahead as long as there are no clients, which are measured and would be slower; serve.

    Classes that are loaded and compiled before them take no time later, nor do results that are
    found while the nodes are stopped.
    """

    def is_asked(within_s: float = 0.0) -> bool:
        return bool(select.select([listener], [], [], within_s)[0])

    def has_reached(phase: PhaseName) -> bool:
        return any(each.phase == phase for each in read_phases(run_folder))

    with contextlib.ExitStack() as kept:
        # A run whose files cannot be read yet costs the answers some time, and nothing else.
        with (
            contextlib.suppress(Exception),
            work_ahead(run_folder, session, lambda: is_asked() or has_reached("load-started")),
        ):
            pass
        ahead = None
        with contextlib.suppress(Exception):
            while ahead is None and not is_asked(_LOOK_S):
                # Until then the history grows.
                if has_reached("final-reads-ended"):
                    ahead = kept.enter_context(work_ahead(run_folder, session, is_asked))
        _serve(listener, session, ahead)


def _serve(
    listener: socket.socket, session: SparkSession | HarnessError, ahead: Ahead | None = None
) -> None:
    connection, _ = listener.accept()
    with connection, connection.makefile("rb") as questions:
        line = questions.readline()
        if not line.endswith(b"\n"):
            return
        module, given = json.loads(line)
        if module not in {_ROOM, *_DOERS}:
            # Unanswered it starts a process of its own.
            return
        answered = threading.Event()
        threading.Thread(target=_watch, args=(connection, answered), daemon=True).start()
        answered_with = _answer(module, Path(given), session, ahead)
        answered.set()
        # It may have hung up at the last moment.
        try:
            connection.sendall(json.dumps(answered_with).encode() + b"\n")
            connection.shutdown(socket.SHUT_RDWR)
        except OSError:
            return


def _answer(
    module: str, given: Path, session: SparkSession | HarnessError, ahead: Ahead | None
) -> tuple[int, str, str]:
    """Return the exit code, the answer, and why there is none."""
    if isinstance(session, HarnessError):
        return session.exit_code, "", str(session)
    try:
        # They find the session that is running.
        if module == _ROOM:
            return _analyse(given, {} if ahead is None else ahead.ready_for(given))
        return _DOERS[module](given)
    except Exception as error:  # noqa: BLE001 - a question's defect must not cost the others
        return HarnessError.exit_code, "", f"{type(error).__name__}: {error}"


def _analyse(run_folder: Path, ready: Ready) -> tuple[int, str, str]:
    def tell(done: int, total: int) -> None:
        # A log that cannot be written costs no analysis.
        with contextlib.suppress(OSError):
            flags = os.O_WRONLY | os.O_APPEND
            with os.fdopen(open_in_place(RunFolder(run_folder).analysis_log, flags), "w") as log:
                log.write(jobs_line(done, total))

    problem = problem_of(run_folder, tell, ready)
    return (0, "", "") if problem is None else (HarnessError.exit_code, "", problem)


#: Besides analyses, by the modules that do the same in a process of their own.
_DOERS: Final[dict[str, Callable[[Path], tuple[int, str, str]]]] = {
    f"{_ROOM}.across_process": lambda path: answer_in(
        path, AcrossRequest, across_process.answer_to
    ),
    f"{_ROOM}.gate_process": lambda path: answer_in(path, FiguresRequest, gate_process.measure),
}


def _watch(connection: socket.socket, answered: threading.Event) -> None:
    """End this process when the asker hangs up before its answer."""
    try:
        left = not connection.recv(1)
    except OSError:
        left = True
    if left and not answered.is_set():
        end_in_order()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
