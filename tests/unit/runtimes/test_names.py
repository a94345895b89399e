"""Names are for people, labels decide."""

import re
from pathlib import Path

import pytest

from splitbrain.contracts.names import NodeName, RunId
from splitbrain.runtimes.docker import names

RUN = RunId("2026-11-21T02:27:02Z seed/7")
N1 = NodeName("n1")
MARK = names.mark_of_run(RUN, Path("/runs/a/lock"))


def test_every_name_is_one_that_engines_take() -> None:
    made = [
        MARK.network(),
        MARK.pod(N1),
        MARK.node(N1),
        MARK.volume(N1),
    ]
    assert len(set(made)) == 4
    for name in made:
        assert re.fullmatch(r"[a-zA-Z0-9][a-zA-Z0-9_.-]+", name)


def test_labels_carry_the_run_unchanged_and_an_absolute_lock(tmp_path: Path) -> None:
    mark = names.mark_of_run(RUN, tmp_path / "x" / ".." / "lock")
    labels = mark.node_labels(N1, "pod", "/data")
    assert labels[names.RUN_LABEL] == RUN
    assert labels[names.LOCK_LABEL] == str(tmp_path / "lock")
    assert (labels[names.NODE_LABEL], labels[names.ROLE_LABEL]) == ("n1", "pod")


def test_runs_of_one_id_in_different_folders_are_different_runs() -> None:
    other = names.mark_of_run(RUN, Path("/runs/b/lock"))
    assert other.network() != MARK.network()
    assert other.volume(N1) != MARK.volume(N1)
    assert other.filters() != MARK.filters()


def test_a_mark_is_read_back_from_its_labels_and_what_lacks_them_is_refused() -> None:
    mark = names.mark_of_run(RUN, Path("/runs/a/lock"), "some/word")
    assert names.mark_of_labels(mark.labels()) == mark
    with pytest.raises(KeyError):
        names.mark_of_labels({"somebody": "else"})
