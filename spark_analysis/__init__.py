"""Analysis of runs by Spark: losses, leaders, outages.

``ingest`` turns a run folder into Parquet tables without Spark, ``jobs`` are functions from
DataFrame to DataFrame, ``analyze`` runs both on one run folder. Only this room imports ``pyspark``.
Must never judge: it computes figures, verdicts belong to ``checker``.
"""
