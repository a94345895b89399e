"""Stands in for ``spark_analysis.part_judging`` and does to some keys what checkers must not."""

import os
import sys
import time
from multiprocessing.connection import Connection

from splitbrain.contracts.budget import Budget
from splitbrain.spark_analysis.part_judging import Judgement, judged, work


def _answer(question: tuple[bytes, str | None, str], budget: Budget) -> Judgement:
    stream, key, model = question
    if key == "hangs":
        # Never looks at its budget.
        while True:
            time.sleep(60)
    if key == "eats":
        hoard: list[bytes] = []
        while True:
            hoard.append(b"x" * (1 << 24))
    if key == "crashes":
        sys.stderr.write("the ground opened\n")
        sys.stderr.flush()
        os._exit(7)
    if key == "raises":
        raise ValueError("no such thing")
    return judged(stream, key, model, budget)


if __name__ == "__main__":
    work(Connection(int(sys.argv[1])), _answer, float(sys.argv[2]), int(sys.argv[3]))
