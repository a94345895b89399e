"""Lake of runs: partitioned Parquet tables of any number of runs, committed run by run.

``docs/lake.md`` has the protocol and its guarantees. Only ``hadoop_store`` and ``reader`` know
Spark: ingesting into a local folder starts no JVM.
"""
