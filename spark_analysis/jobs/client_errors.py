"""How operations failed, by class of error."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as sql

from splitbrain.contracts.analysis.run import ClientError
from splitbrain.spark_analysis.frames import conform
from splitbrain.spark_analysis.schemas import table_of

#: Class of operations whose client gave none.
NO_CLASS = "none"


def client_errors(operations: DataFrame) -> DataFrame:
    """Operations that did not end ok, by kind, node, outcome and class of error.

    Args:
        operations: rows of ``OPERATIONS``; final reads count too.

    Returns:
        Rows of ``ClientError``, in no order.
    """
    found = (
        operations.where(sql.col("type") != "ok")
        .withColumn("error", sql.coalesce("error", sql.lit(NO_CLASS)))
        .groupBy("run_id", "f", "node", "type", "error")
        .agg(
            sql.count(sql.lit(1)).alias("count"),
            sql.min("start_ns").alias("first_ns"),
            sql.max("start_ns").alias("last_ns"),
        )
    )
    return conform(found, table_of(ClientError))
