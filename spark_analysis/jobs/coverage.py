"""Which fault met which role, epoch phase and workload, over all runs.

What a run's faults met was counted when it was judged (``docs/faults/coverage.md``); here the
counts of runs are added up. A run that nobody counted in adds nothing, a fault that hit nodes in
two roles counts in both.
"""

from pyspark.sql import DataFrame
from pyspark.sql import functions as sql

from splitbrain.spark_analysis.across_schemas import FAULT_COVERAGE
from splitbrain.spark_analysis.frames import conform


def fault_coverage(coverage: DataFrame) -> DataFrame:
    """The counts of all runs added up.

    Args:
        coverage: rows of ``COVERAGE`` of a lake, with their partition ``system``.

    Returns:
        Rows of ``FAULT_COVERAGE``, in no order.
    """
    added = coverage.groupBy("system", "workload", "kind", "role", "phase").agg(
        sql.count_distinct("run_id").alias("runs"),
        sql.sum("faults").alias("faults"),
        sql.sum("bitten").alias("bitten"),
    )
    return conform(added, FAULT_COVERAGE)
