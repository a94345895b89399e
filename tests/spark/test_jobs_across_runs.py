"""Each job over many runs equals its plain-Python reference on the same drawn runs."""

from collections.abc import Sequence
from typing import Any

import pytest

from splitbrain.spark_analysis.frames import struct_type
from splitbrain.spark_analysis.jobs.across_runs import (
    DIMENSIONS,
    Dimension,
    fault_effects,
    latency_by,
)
from splitbrain.spark_analysis.jobs.availability import fault_windows
from splitbrain.spark_analysis.lake.reader import LakeTables
from splitbrain.spark_analysis.schemas import FAULT_EFFECTS, LATENCY_BY
from tests.spark import reference_across_runs as reference
from tests.spark.reference import Run

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]

FIGURES = ("count", "p50_ms", "p95_ms", "p99_ms", "max_ms")


@pytest.fixture
def systems(references: dict[str, Run]) -> dict[str, str]:
    """Two systems, drawn by the number of the run; these runs have no plan."""
    return {name: "even" if name[-1] in "2468" else "odd" for name in references}


@pytest.fixture
def split(lake: LakeTables) -> LakeTables:
    """The lake with those systems."""
    system = "CASE WHEN run_id RLIKE '[2468]$' THEN 'even' ELSE 'odd' END AS system"
    return LakeTables(
        *(frame.drop("system").selectExpr("*", system) for frame in lake),
    )


def close(figure: Any) -> Any:
    return pytest.approx(figure, rel=1e-12) if isinstance(figure, float) else figure


@pytest.mark.parametrize(
    "by", [DIMENSIONS, ("fault",), ("system", "node"), ("second", "f"), ()], ids=str
)
def test_latency_by_equals_reference(
    split: LakeTables,
    references: dict[str, Run],
    systems: dict[str, str],
    by: Sequence[Dimension],
) -> None:
    result = latency_by(split.operations, split.faults, by)
    assert result.schema.names == struct_type(LATENCY_BY).names
    rows = result.toArrow().to_pylist()
    found = {
        (*(row[name] for name in by), row["type"]): tuple(row[name] for name in FIGURES)
        for row in rows
    }
    assert len(found) == len(rows)
    assert all(row[name] is None for row in rows for name in DIMENSIONS if name not in by)
    expected = reference.latency_by(references, systems, by)
    assert found.keys() == expected.keys()
    for key, figures in expected.items():
        assert list(found[key]) == [close(figure) for figure in figures], key
    if "fault" in by:
        faults = {key[list(by).index("fault")] for key in expected}
        assert "none" in faults
        assert any("+" in fault for fault in faults)


def test_fault_effects_equal_reference(
    split: LakeTables, references: dict[str, Run], systems: dict[str, str]
) -> None:
    result = fault_effects(fault_windows(split.operations, split.faults), split.runs)
    assert result.schema.names == struct_type(FAULT_EFFECTS).names
    rows = result.toArrow().to_pylist()
    found = {(row.pop("system"), row.pop("kind"), row.pop("target")): row for row in rows}
    assert len(found) == len(rows)
    expected = reference.fault_effects(references, systems)
    assert found.keys() == expected.keys()
    assert sum(row["failovers"] for row in expected.values()) > 5
    for key, figures in expected.items():
        assert found[key] == {name: close(figure) for name, figure in figures.items()}, key
