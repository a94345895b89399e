"""Programs that tests let run as drivers, on the cluster and here.

Each prints one JSON text as its last line. They run from their source text, so that a function of
theirs is sent to workers by value, as that of a user's own program is.
"""

import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final, TypeVar

import msgspec

from splitbrain.spark_analysis.session import MASTER_VARIABLE
from tests.containers.spark_cluster.standalone import Cluster

_There = TypeVar("_There")
_Here = TypeVar("_Here")
#: Judges what the steps in its argument name, all in one session, and prints each one's result:
#: ``parts`` of a file of operations (FILE MODEL SECONDS JUDGE, where JUDGE is the file of a module
#: that the driver ships, or ``-`` for the checker's own), of a ``run`` folder, as ``splitbrain
#: analyze --parts`` does (FOLDER MODEL), and ``hosts``: one small part on each core, and where; no
#: core is done before all have begun (the FOLDER in which they meet).
JUDGE: Final = """
import pathlib, socket, sys, time
import msgspec
from splitbrain.spark_analysis.frames import struct_type
from splitbrain.spark_analysis.jobs.linearizability import part_verdicts
from splitbrain.spark_analysis.parts_process import judge_parts
from splitbrain.spark_analysis.schemas import OPERATIONS
from splitbrain.spark_analysis.session import spark_session

def parts(spark, path, model, seconds, judge):
    given = {"time_budget_s": float(seconds)}
    if judge != "-":
        spark.sparkContext.addPyFile(judge)
        given["judge"] = pathlib.Path(judge).stem
    operations = spark.read.schema(struct_type(OPERATIONS)).parquet(path)
    return part_verdicts(operations, model, **given).toArrow().to_pylist()

def run(spark, folder, model):
    return judge_parts(spark, pathlib.Path(folder), [model])

def hosts(spark, folder):
    meeting = pathlib.Path(folder)

    def judged(values):
        from splitbrain.checker.linearizability.check import check
        from splitbrain.contracts.budget import Unlimited
        from splitbrain.history.records import PairedOperation

        (value,) = values
        (meeting / str(value)).touch()
        deadline = time.monotonic() + 120
        while len(list(meeting.iterdir())) < 2 and time.monotonic() < deadline:
            time.sleep(0.05)
        operations = [
            PairedOperation(0, 0, "write", None, 1, None, "ok", 0, 10),
            PairedOperation(2, 1, "read", None, None, value, "ok", 20, 30),
        ]
        verdict = check(operations, "register", Unlimited()).verdict.value
        yield value, verdict, socket.gethostname()

    return spark.sparkContext.parallelize([1, 2], 2).mapPartitions(judged).collect()

with spark_session() as spark:
    steps = msgspec.json.decode(sys.argv[1])
    results = {name: globals()[kind](spark, *given) for name, (kind, *given) in steps.items()}
print(msgspec.json.encode(results).decode())
"""
#: Looks at all runs of a lake: LAKE.
LOOK_ACROSS: Final = """
import sys
import msgspec
from splitbrain.spark_analysis.across_process import AcrossRequest, look_across
from splitbrain.spark_analysis.session import spark_session

with spark_session() as spark:
    across = look_across(spark, AcrossRequest(sys.argv[1], None))
print(msgspec.json.encode(across).decode())
"""


def told_there(cluster: Cluster, program: str, *arguments: str) -> Any:
    """Return the last line of a driver on the cluster."""
    code, output = cluster.run_driver(["python3", "-c", program, *arguments])
    assert code == 0, output
    return msgspec.json.decode(output.splitlines()[-1])


def told_here(program: str, *arguments: str) -> Any:
    """Return the same program's last line on a local Spark."""
    environment = {name: value for name, value in os.environ.items() if name != MASTER_VARIABLE}
    output = subprocess.run(
        [sys.executable, "-c", program, *arguments],
        check=True,
        timeout=600,
        env=environment,
        stdout=subprocess.PIPE,
    ).stdout
    return msgspec.json.decode(output.splitlines()[-1])


def told_both(
    cluster: Cluster, program: str, there: Sequence[str], here: Sequence[str]
) -> tuple[Any, Any]:
    """Run the program on the cluster and on a local Spark at the same time."""
    return at_once(lambda: told_there(cluster, program, *there), lambda: told_here(program, *here))


def at_once(there: Callable[[], _There], here: Callable[[], _Here]) -> tuple[_There, _Here]:
    """Return both results; the second runs in a thread beside the first."""
    with ThreadPoolExecutor(max_workers=1) as beside:
        local = beside.submit(here)
        return there(), local.result()
