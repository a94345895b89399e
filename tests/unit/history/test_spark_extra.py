"""Without the extra ``[spark]`` each purpose that needs it is refused in one sentence."""

from pathlib import Path

import pytest

from splitbrain.contracts.errors import UsageError
from splitbrain.harness.cli.main import run
from splitbrain.history import spark_extra
from splitbrain.history.column_reader import read_columns
from splitbrain.history.importers import load


@pytest.fixture
def lacking(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spark_extra, "_PACKAGES", ("msgspec", "no_package_of_this_name"))


def test_the_extra_is_there_where_all_of_its_packages_are() -> None:
    assert spark_extra.has_spark()
    spark_extra.require_spark("Anything")


@pytest.mark.usefixtures("lacking")
@pytest.mark.parametrize("read", [load, read_columns])
def test_a_parquet_history_is_refused_by_each_of_its_readers(read: object, tmp_path: Path) -> None:
    path = tmp_path / "history.parquet"
    path.write_bytes(b"PAR1")
    assert callable(read)
    with pytest.raises(UsageError, match=r"A Parquet history needs .* \[spark\]"):
        read(path)


@pytest.mark.usefixtures("lacking")
@pytest.mark.parametrize(
    "words",
    [
        ("analyze", "runs/latest"),
        ("check", "{run}", "--analyze"),
        ("ingest", "runs"),
        ("nightly", "night.toml"),
        ("test", "--analyze"),
    ],
)
def test_a_command_that_needs_the_extra_says_so(
    words: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "plan.json").touch()
    (tmp_path / "history.jsonl").touch()
    assert run([word.format(run=tmp_path) for word in words]) == 64
    said = capsys.readouterr()
    assert spark_extra.COMMAND in said.err
    assert "Traceback" not in said.err
