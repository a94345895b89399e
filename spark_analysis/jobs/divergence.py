"""First differences between the committed logs of two nodes.

Two dumped logs are compared from the later of their starts up to the earlier of their ends: earlier
records are in a snapshot, and a node that is behind differs in nothing. They **differ** at an
offset where they hold records of different epoch or digest, or where one alone holds a record: a
committed log has no holes that another one lacks. Offsets on which all nodes agree, which is nearly
all of them, are never paired.
"""

from pyspark.sql import DataFrame
from pyspark.sql import functions as sql

from splitbrain.contracts.analysis.run import Divergence
from splitbrain.spark_analysis.frames import conform
from splitbrain.spark_analysis.schemas import table_of


def first_divergences(committed: DataFrame, logs: DataFrame) -> DataFrame:
    """Return the first ``Divergence`` of each pair of logs; ``a`` has the node of lesser name."""
    extent = sql.struct("node", "start_offset", "end_offset")
    extents = (
        logs.where(sql.col("start_offset").isNotNull())
        .groupBy("run_id")
        .agg(sql.collect_list(extent).alias("extents"))
    )
    covering = sql.filter(
        "extents",
        lambda log: (
            (log["start_offset"] <= sql.col("offset")) & (sql.col("offset") < log["end_offset"])
        ),
    )
    # Spark compares numbers without sorting texts; a digest is no more than a hash either.
    version = sql.xxhash64("epoch", "digest")
    disputed = (
        committed.groupBy("run_id", "offset")
        .agg(
            sql.count(sql.lit(1)).alias("held"),
            sql.min(version).alias("least"),
            sql.max(version).alias("greatest"),
        )
        .join(sql.broadcast(extents), "run_id")
        .withColumn("covering", sql.transform(covering, lambda log: log["node"]))
        .where((sql.col("least") != sql.col("greatest")) | (sql.col("held") < sql.size("covering")))
    )
    records = committed.select(
        "run_id", "node", "offset", sql.struct("epoch", "digest").alias("record")
    )
    sides = disputed.select("run_id", "offset", sql.explode("covering").alias("node")).join(
        records, ["run_id", "offset", "node"], "left"
    )
    a = sides.withColumnsRenamed({"node": "node_a", "record": "a"})
    b = sides.withColumnsRenamed({"node": "node_b", "record": "b"})
    differing = (
        a.join(b, ["run_id", "offset"])
        .where(sql.col("node_a") < sql.col("node_b"))
        .where(~sql.col("a").eqNullSafe(sql.col("b")))
    )
    first = sql.min(sql.struct("offset", "a", "b")).alias("first")
    found = (
        differing.groupBy("run_id", "node_a", "node_b")
        .agg(first)
        .select(
            *("run_id", "node_a", "node_b", "first.offset"),
            *(
                sql.col(f"first.{side}.{name}").alias(f"{name}_{side}")
                for side in "ab"
                for name in ("epoch", "digest")
            ),
        )
    )
    return conform(found, table_of(Divergence))
