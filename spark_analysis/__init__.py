"""Answers from runs: what was lost, who led when, how long it was down; computed by Spark.

``ingest`` turns a run folder into Parquet tables without Spark, ``jobs`` are functions from
DataFrame to DataFrame, ``analyze`` runs both on one run folder. ``pyspark`` is imported here and
nowhere else. Verdicts belong to ``checker``; what stands here are figures.
"""
