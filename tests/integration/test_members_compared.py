"""Our nodes on this machine: a bug that makes members diverge is seen in their digests alone."""

from pathlib import Path

import pytest

from tests.containers.real_runs import run, verdicts

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

LOAD = ("--workload", "set", "--rate", "400", "--concurrency", "20", "--time-limit", "10")


@pytest.mark.parametrize(
    ("bug", "verdict"), [(("--bug", "applied-out-of-order"), "invalid"), ((), "valid")]
)
def test_members_that_apply_in_another_order_are_told_from_those_that_do_not(
    tmp_path: Path, bug: tuple[str, ...], verdict: str
) -> None:
    words = ("--runtime", "local", "--nemesis", "pause:leader", *LOAD, *bug)
    _, found, said = run(tmp_path, "--system", "kraft", *words)
    assert verdicts(found)["member-digests"] == verdict, said
    if not bug:
        assert set(verdicts(found).values()) == {"valid"}, said
