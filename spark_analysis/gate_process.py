"""The gate's figures: ``python -m splitbrain.spark_analysis.gate_process REQUEST OWNER``.

Reads a ``FiguresRequest`` from a file and prints a ``FiguresAnswer`` as its last line, JSON both.
Ends with 0, or with 3 and one sentence on standard error; with its owner's death it ends too.
"""

import sys
from typing import Final

from splitbrain.contracts.figure import Subject
from splitbrain.spark_analysis.gate_figures import gate_figures
from splitbrain.spark_analysis.gate_source import FiguresAnswer, FiguresRequest, open_selection
from splitbrain.spark_analysis.owned_process import answer
from splitbrain.spark_analysis.session import one_sentence, spark_session

_FAILED: Final = (
    "measure the runs with Spark",
    "all that were selected",
    "Run splitbrain analyze on one of them to see more; the runs themselves are not affected.",
)


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
    sys.exit(answer(sys.argv[1:], FiguresRequest, measure))
