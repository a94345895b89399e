"""Runs that a suite has done again, told from those that count."""

from pathlib import Path

import pytest

from splitbrain.history.expectation import was_done_again


def attempt(place: Path, number: int, *, started: bool = True) -> Path:
    """The run folder of a suite's attempt."""
    run = place / f"attempt-{number}" / "kraft-register" / "run"
    run.mkdir(parents=True)
    (run / "plan.json").write_text("{}")
    if started:
        (run.parents[1] / "attempt.json").write_text('{"command": [], "pid": 1, "started": ""}')
    return run


@pytest.mark.parametrize(
    ("results", "again"),
    [
        (None, True),
        ('{"verdict": "unknown"}', True),
        # A violation counts, whatever became of the process.
        ('{"verdict": "invalid"}', False),
        ("{", False),
    ],
)
def test_a_run_that_was_cut_off_is_done_again_unless_it_found_something(
    tmp_path: Path, results: str | None, again: bool
) -> None:
    first, second = attempt(tmp_path, 1), attempt(tmp_path, 2)
    if results is not None:
        (first / "results.json").write_text(results)
    assert (was_done_again(first), was_done_again(second)) == (again, False)


def test_the_last_attempt_is_the_run_also_where_a_next_one_never_started(tmp_path: Path) -> None:
    only = attempt(tmp_path, 9)
    assert not was_done_again(only)
    attempt(tmp_path, 10, started=False)
    assert not was_done_again(only)


def test_a_folder_that_no_suite_made_is_a_run_whatever_it_is_called(tmp_path: Path) -> None:
    named_so = attempt(tmp_path, 1, started=False)
    attempt(tmp_path, 2)
    assert not was_done_again(named_so)
    assert not was_done_again(tmp_path)
