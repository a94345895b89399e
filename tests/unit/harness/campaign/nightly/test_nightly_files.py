"""Nightly files that are wrong are refused in one sentence, with the line."""

from pathlib import Path

import pytest

from splitbrain.contracts.errors import UsageError
from splitbrain.harness.campaign.nightly.definition import read_nightly
from splitbrain.harness.cli.main import run as splitbrain

SUITE = """
name = "unit"
[[matrix]]
name = "planted"
bug = "stale-leader-reads"
expect = "invalid"
"""
GOOD = """schema = 1
suite = "suite.toml"
policy = "gate.toml"
time_budget = "1h"
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "suite.toml").write_text(SUITE)
    (tmp_path / "gate.toml").write_text(
        'schema = 1\n[tier.small]\nrequire = ["runs >= 1"]\n[tier.big]\nrequire = ["runs >= 9"]\n'
    )
    return tmp_path


def test_paths_are_those_beside_the_file(folder: Path) -> None:
    path = folder / "night.toml"
    path.write_text(GOOD + 'tier = "small"\nlake = "here"\nbaseline = "gate.toml"\n')
    nightly = read_nightly(path)
    assert nightly.lake == str(folder / "here")
    assert nightly.baseline == str(folder / "gate.toml")
    assert (nightly.suite_s, nightly.analysis_s) == (3240, 360)
    assert read_nightly(path, "30m").suite_s == 1620


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("", "it says no schema"),
        ("schema = 2\n", "line 1: it has schema 2"),
        (GOOD, "has several tiers"),
        (GOOD + 'tier = "smal"\n', "has no tier 'smal'. Did you mean 'small'?"),
        (
            GOOD + 'tier = "small"\ntime_buget = 5\n',
            "line 6: there is no key 'time_buget'. Did you mean 'time_budget'?",
        ),
        (GOOD + 'tier = "small"\n[canary]\nx = 1\n', "line 6: there is no key 'canary'"),
        (GOOD + "tier = 5\n", "line 5: tier 5 is no text"),
        (GOOD + 'tier = "small"\nkeep_valid = 1\n', "line 6: keep_valid 1 is neither"),
        (
            GOOD + 'tier = "small"\nanalysis_budget = "2h"\n',
            "line 6: analysis_budget '2h' leaves the suite no time",
        ),
        (GOOD.replace("1h", "soon") + 'tier = "small"\n', "line 4: 'soon' is no time"),
        (GOOD.replace('"1h"', "true") + 'tier = "small"\n', "line 4: time_budget True is no time"),
        (GOOD.replace('time_budget = "1h"', 'tier = "small"'), "it names no time_budget"),
        (GOOD.replace("suite.toml", "none.toml"), "none.toml"),
        ('schema = 1\npolicy = "gate.toml"\n', "it names no suite"),
        ("schema = ", "is no TOML"),
    ],
)
def test_wrong_files_are_refused(folder: Path, content: str, told: str) -> None:
    path = folder / "night.toml"
    path.write_text(content)
    with pytest.raises(UsageError) as refused:
        read_nightly(path)
    assert told in str(refused.value)


def test_a_suite_without_a_canary_is_refused(folder: Path) -> None:
    (folder / "suite.toml").write_text('name = "unit"\n[[matrix]]\nname = "correct"\n')
    path = folder / "night.toml"
    path.write_text(GOOD + 'tier = "small"\n')
    with pytest.raises(UsageError, match=r"line 2: the suite 'unit' has no canary"):
        read_nightly(path)


def test_the_command_line_says_it_in_one_sentence(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert splitbrain(["nightly", str(folder / "missing.toml")]) == 64
    assert "cannot be read" in capsys.readouterr().err


def test_the_shipped_nights_can_be_run_by_this_version() -> None:
    nights = sorted((Path(__file__).parents[5] / "bench" / "nights").glob("*.toml"))
    assert nights
    for path in nights:
        assert read_nightly(path).suite.suite.name == path.stem
