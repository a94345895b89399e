"""Bounded rows of a result as plain values, by way of Arrow and pandas.

Must never collect more than it was told to, nor loop over rows.
"""

from collections.abc import Sequence
from typing import Any, Final, cast

import msgspec
import pandas as pd
from pyspark.sql import Column, DataFrame

_NS_PER_MS: Final = 1e6


def collect(result: DataFrame, *order: str | Column, limit: int) -> pd.DataFrame:
    """The first rows of a result, without the run id; integers stay integers beside nulls."""
    table = result.drop("run_id").orderBy(*order).limit(limit).toArrow()
    return table.to_pandas(types_mapper=pd.ArrowDtype)


def figures(result: DataFrame, **aggregates: Column) -> dict[str, Any]:
    """Aggregates of all rows of a result, by name."""
    named = [aggregate.alias(name) for name, aggregate in aggregates.items()]
    return result.agg(*named).toArrow().to_pylist()[0]


def in_ms(frame: pd.DataFrame) -> pd.DataFrame:
    """Turn the columns in nanoseconds into milliseconds, in their places."""
    names = [str(name) for name in frame.columns if str(name).endswith("_ns")]
    changed = frame.assign(**{name: frame[name] / _NS_PER_MS for name in names})
    return changed.rename(columns={name: f"{name.removesuffix('_ns')}_ms" for name in names})


def plain_rows(frame: pd.DataFrame, *, decoded: Sequence[str] = ()) -> list[dict[str, Any]]:
    """Plain Python values, null as None.

    Args:
        frame: as ``collect`` gave it.
        decoded: columns of JSON texts that become the values that they tell.
    """
    plain = frame.astype(object).where(frame.notna(), None)
    for name in decoded:
        # All of a column at once: pandas would make floats of integers beside nulls.
        texts = frame[name].astype(object).where(frame[name].notna(), "null")
        values = msgspec.json.decode(f"[{','.join(texts)}]", type=list[Any])
        plain[name] = pd.Series(values, index=frame.index, dtype=object)
    if "nodes" in frame.columns:
        plain["nodes"] = plain["nodes"].map(list)
    return cast("list[dict[str, Any]]", plain.to_dict("records"))
