"""Which fault met which role, epoch phase and workload, over all runs.

What a run's faults met was counted when it was judged (``docs/faults/coverage.md``); here the
counts of runs are added up. A run that nobody counted in adds nothing, a fault that hit nodes in
two roles counts in both.
"""

from pyspark.sql import DataFrame
from pyspark.sql import functions as sql

from splitbrain.contracts.analysis.across import Met
from splitbrain.spark_analysis.frames import conform
from splitbrain.spark_analysis.schemas import table_of


def fault_coverage(coverage: DataFrame) -> DataFrame:
    """The counts of all runs added up.

    Args:
        coverage: rows of ``COVERAGE`` of a lake, with their partition ``system``.

    Returns:
        Rows of ``Met``, in no order.
    """
    added = coverage.groupBy("system", "workload", "kind", "role", "phase").agg(
        sql.count_distinct("run_id").alias("runs"),
        sql.sum("faults").alias("faults"),
        sql.sum("bitten").alias("bitten"),
    )
    return conform(added, table_of(Met))
