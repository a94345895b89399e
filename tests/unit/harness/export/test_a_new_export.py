"""A format that is not there yet: one row of ``FORMATS``, as CONTRIBUTING says."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from splitbrain.harness.cli.main import run as splitbrain
from splitbrain.harness.export import command
from splitbrain.harness.export.command import Format
from splitbrain.harness.export.timeline import Timeline
from tests.synthetic_runs import SyntheticRun


def rows(timeline: Timeline) -> Iterator[bytes]:
    for span in timeline.spans():
        yield f"{span.sort},{span.owner},{span.start}\n".encode()


def test_a_format_is_one_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(command.FORMATS, "rows", Format(".csv", rows, "Open it."))
    run = SyntheticRun(tmp_path / "run", operations_per_second=10).write()
    file = tmp_path / "rows.csv"
    assert splitbrain(["export", str(run), "--format", "rows", "--output", str(file)]) == 0
    lines = file.read_text().splitlines()
    assert "fault,n2,22000000000" in lines
    assert {line.split(",")[0] for line in lines} == {"operation", "leader", "fault"}
