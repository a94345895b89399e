"""``python -m spark_analysis.gate_process REQUEST OWNER``: the gate's figures, in a child process.

Reads a ``FiguresRequest`` from a file and prints a ``FiguresAnswer`` as its last line, JSON both.
Ends with 0, or with 3 and one sentence on standard error; with its owner's death it ends too.
"""

import signal
import sys
import threading
from pathlib import Path
from typing import Final

import msgspec

from contracts.errors import HarnessError
from contracts.figure import Subject
from spark_analysis.gate_figures import gate_figures
from spark_analysis.gate_source import FiguresAnswer, FiguresRequest, open_selection
from spark_analysis.owned_process import end_with, leave
from spark_analysis.session import spark_session
from spark_analysis.spark_failures import one_sentence

_FAILED: Final = (
    "measure the runs with Spark",
    "all that were selected",
    "Run splitbrain analyze on one of them to see more; the runs themselves are not affected.",
)


def main(arguments: list[str]) -> int:
    """Answer the request in the file that the first argument names; returns the exit code."""
    request_path, owner = arguments
    signal.signal(signal.SIGTERM, leave)
    threading.Thread(target=end_with, args=(int(owner),), daemon=True).start()
    request = msgspec.json.decode(Path(request_path).read_bytes(), type=FiguresRequest)
    try:
        answer = measure(request)
    except HarnessError as error:
        sys.stderr.write(f"{error}\n")
        return error.exit_code
    sys.stdout.write(msgspec.json.encode(answer).decode() + "\n")
    return 0


def measure(request: FiguresRequest) -> FiguresAnswer:
    """Compute what is asked, in a session of its own.

    Raises:
        HarnessError: a run cannot be read, there is no Java, or Spark failed.
    """
    with spark_session() as session, one_sentence(*_FAILED):
        tables, runs, damage = open_selection(session, request.runs)
        rows = gate_figures(tables, runs, _each_once(request.subjects)).collect()
    figures = {row["subject"]: (row["value"], row["samples"]) for row in rows}
    return FiguresAnswer(figures, tuple(damage))


def _each_once(subjects: tuple[Subject, ...]) -> list[Subject]:
    return list(dict.fromkeys(subjects))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
