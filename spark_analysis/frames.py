"""Declared tables as Spark knows them: the type of a row, and a frame brought into its shape."""

from collections.abc import Sequence
from typing import Final, NamedTuple

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as sql
from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    DataType,
    DoubleType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from splitbrain.spark_analysis.schemas import Table

_SCALARS: Final[dict[pa.DataType, DataType]] = {
    pa.int64(): LongType(),
    pa.float64(): DoubleType(),
    pa.string(): StringType(),
    pa.bool_(): BooleanType(),
    pa.timestamp("us", tz="UTC"): TimestampType(),
}


def struct_type(table: Table) -> StructType:
    """The table's schema for Spark."""
    return StructType(
        [StructField(field.name, _spark_type(field.type), field.nullable) for field in table.schema]
    )


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


def _spark_type(kind: pa.DataType) -> DataType:
    if isinstance(kind, pa.ListType):
        return ArrayType(_spark_type(kind.value_type))
    if isinstance(kind, pa.MapType):
        return MapType(_spark_type(kind.key_type), _spark_type(kind.item_type))
    if kind not in _SCALARS:
        raise TypeError(f"no Spark type is declared for Arrow's {kind}")
    return _SCALARS[kind]
