"""Declared tables as Spark knows them: the type of a row, a frame brought into its shape.

And the way back: the first rows of a result as the records that declare them.
"""

import contextlib
import warnings
from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple, TypeVar

import msgspec
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sql
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from splitbrain.contracts.analysis.run import Moment, Row, Value
from splitbrain.spark_analysis.schemas import Table, columns_of


def struct_type(table: Table) -> StructType:
    """The table's schema for Spark."""
    return from_arrow_schema(table.schema)


def conform(frame: DataFrame, table: Table, *, kept: Sequence[str] = ()) -> DataFrame:
    """The frame's columns in the declared order and types; a missing column is Spark's error.

    Args:
        frame: any rows with at least these columns.
        table: declares them.
        kept: further columns that stay, behind those of the table.
    """
    return frame.select(
        *(sql.col(f"`{field.name}`").cast(field.dataType) for field in struct_type(table)), *kept
    )


_Row = TypeVar("_Row", bound=Row)
_NS_PER_MS: Final = 1e6


def rows_of(result: DataFrame, row: type[_Row], *order: str | Column, limit: int) -> list[_Row]:
    """The first rows of a result, by way of Arrow; moments in ms, values decoded.

    Args:
        result: with the columns of the row at least.
        row: record of a row.
        order: columns.
        limit: rows that leave Spark at most.
    """
    columns = columns_of(row)
    shown = [
        (sql.col(one.name) / _NS_PER_MS if one.kind == Moment else sql.col(one.name)).alias(
            one.field
        )
        for one in columns
    ]
    found = result.orderBy(*order).limit(limit).select(*shown).toArrow().to_pylist()
    for name in (one.field for one in columns if one.kind == Value):
        for told in found:
            told[name] = None if told[name] is None else msgspec.json.decode(told[name])
    return msgspec.convert(found, list[row])


def figures(result: DataFrame, **aggregates: Column) -> dict[str, Any]:
    """Aggregates of all rows of a result, by name."""
    named = [aggregate.alias(name) for name, aggregate in aggregates.items()]
    return result.agg(*named).toArrow().to_pylist()[0]


@contextlib.contextmanager
def arrow_functions() -> Iterator[None]:
    """Around ``mapInArrow`` and ``applyInArrow``.

    Spark warns of the version of pandas there, which such a function never meets.
    """
    with warnings.catch_warnings():
        warnings.filterwarnings(
            "ignore", "PySpark does not yet fully support pandas", FutureWarning
        )
        yield


#: Rows that are sent to every worker rather than sorted into place: some MB.
FEW_ROWS: Final = 50_000


class Counted(NamedTuple):
    """Rows that are computed, and how many they are."""

    rows: DataFrame
    #: Not more than one above ``FEW_ROWS``, where it stands for all larger ones.
    size: int

    @property
    def are_few(self) -> bool:
        """Whether they can be sent to every worker."""
        return self.size <= FEW_ROWS

    def few(self, frame: DataFrame) -> DataFrame:
        """The frame, made of these rows: sent to every worker where they are few."""
        return sql.broadcast(frame) if self.are_few else frame


def few_or_many(frame: DataFrame) -> Counted:
    """Compute what is nearly always small beside the tables that it is to be joined with.

    Spark plans a join before it knows: it would move the large table as well. This is computed at
    once, where it is called.
    """
    rows = frame.localCheckpoint()
    return Counted(rows, rows.limit(FEW_ROWS + 1).count())
