"""Effects of operations, as columns: which only read, which were refused, which left a record.

The workload declares them and an ingest writes them (column ``effect``); where it did not, in runs
of older versions, the usual names of functions tell.
"""

from typing import Final

from pyspark.sql import Column
from pyspark.sql import functions as sql

from splitbrain.history.functions import USUAL

_READS: Final = tuple(sorted(f for f, function in USUAL.items() if function.effect == "reads"))


def is_write() -> Column:
    """Whether it was asked to change something, whatever came of it."""
    return sql.coalesce(sql.col("effect") != "reads", ~sql.col("f").isin(*_READS))


def is_refused() -> Column:
    """Whether it is a change whose result says that it was not done.

    ``[expected, new, false]`` of a compare-and-set, ``[number, false]`` of a create, ``false`` of a
    delete.
    """
    by_last = sql.col("f").isin("cas", "create") & sql.col("result").endswith("false]")
    by_name = by_last | ((sql.col("f") == "delete") & (sql.col("result") == "false"))
    return sql.coalesce(sql.col("effect") == "refused", by_name, sql.lit(False))


def has_record() -> Column:
    """Whether it has a record in the committed logs, given that it was acknowledged."""
    return sql.coalesce(sql.col("effect") == "records", is_write() & ~is_refused())
