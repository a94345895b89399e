"""A simulated run is analysed where somebody asks for it, and it is said that it was not."""

from pathlib import Path

import pytest

from splitbrain.harness.cli import main as cli
from splitbrain.harness.folder.results import Results
from splitbrain.harness.judge.simulated_outcomes import judged
from splitbrain.harness.run.world.folder import keep_sweep_run
from splitbrain.history.run_folder import RunFolder
from tests.unit.harness.small_worlds import calm


class Asked(Exception):
    """Judging was asked for."""


@pytest.mark.parametrize(
    ("options", "analyzed"), [((), False), (("--analyze",), True), (("--no-analyze",), False)]
)
def test_a_simulated_run_is_analysed_on_request_only(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    options: tuple[str, ...],
    analyzed: bool,
) -> None:
    folder = RunFolder(keep_sweep_run(judged(calm()), tmp_path))
    seen: list[bool] = []

    def judge(_: Path, *, analyze: bool, **__: object) -> Results:
        seen.append(analyze)
        raise Asked

    monkeypatch.setattr("splitbrain.harness.report.publishing.judge_and_publish", judge)
    for command in (
        ["check", str(folder.root), *options],
        [
            *("test", "--runtime", "simulated", "--time-limit", "0.1", "--nemesis", "none"),
            *("--runs-folder", str(tmp_path / "runs"), *options),
        ],
    ):
        cli.run(command)
    assert seen == [analyzed, analyzed]
    said = capsys.readouterr().err
    assert ("no Spark analysis: simulated latencies and rates mean nothing" in said) is (
        not options
    )


def test_a_run_in_containers_is_analysed_by_default(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = RunFolder(keep_sweep_run(judged(calm()), tmp_path))
    folder.simulation.unlink()
    seen: list[bool] = []

    def judge(_: Path, *, analyze: bool, **__: object) -> Results:
        seen.append(analyze)
        raise Asked

    monkeypatch.setattr("splitbrain.harness.report.publishing.judge_and_publish", judge)
    cli.run(["check", str(folder.root)])
    assert seen == [True]
