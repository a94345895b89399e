"""Names are for people, labels decide."""

import re
from pathlib import Path

from contracts.names import NodeName, RunId
from runtimes.docker import names

RUN = RunId("2026-11-21T02:27:02Z seed/7")
N1 = NodeName("n1")


def test_every_name_is_one_that_engines_take() -> None:
    made = [
        names.network_name(RUN),
        names.pod_name(RUN, N1),
        names.node_name(RUN, N1),
        names.volume_name(RUN, N1),
    ]
    assert len(set(made)) == 4
    for name in made:
        assert re.fullmatch(r"[a-zA-Z0-9][a-zA-Z0-9_.-]+", name)


def test_labels_carry_the_run_unchanged_and_an_absolute_lock(tmp_path: Path) -> None:
    labels = names.node_labels(RUN, tmp_path / "x" / ".." / "lock", N1, "pod", "/data")
    assert labels[names.RUN_LABEL] == RUN
    assert labels[names.LOCK_LABEL] == str(tmp_path / "lock")
    assert (labels[names.NODE_LABEL], labels[names.ROLE_LABEL]) == ("n1", "pod")
