"""A lake of runs: partitioned Parquet tables of any number of runs, committed run by run.

The protocol and what it guarantees stand in ``docs/lake.md``. Nothing here but ``hadoop_store`` and
``reader`` knows Spark: ingesting into a local folder starts no JVM.
"""
