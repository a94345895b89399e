"""Consumer groups of Kafka in containers, in both protocols; whoever errs is found."""

from pathlib import Path

import pytest

from tests.containers.real_runs import run

pytestmark = [pytest.mark.containers, pytest.mark.timeout(900)]

KAFKA = ("--system", "kafka")
GROUPS = (*KAFKA, "--workload", "groups", "--time-limit")


#: A busy machine takes its time to start a broker again: much of the load comes after that.
ONE_KILL = """\
[[faults]]
kind = "kill"
target = "leader"
at_ms = 8000
duration_ms = 3000
"""


@pytest.mark.nightly
@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_group_reads_all_and_keeps_its_commits(tmp_path: Path, protocol: str) -> None:
    plan = tmp_path / "plan.toml"
    plan.write_text(ONE_KILL)
    options = (*GROUPS, "40", "--nemesis", str(plan), "--setting", f"group.protocol={protocol}")
    code, found, output = run(tmp_path, *options)
    assert code == 0, output
    assert found.vacuous == ()
    (groups,) = [result for result in found.checkers if result.checker == "groups"]
    assert groups.figures["commits"] > 0
    assert groups.figures["redelivered"] > 0


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("version", "protocol"),
    [
        *((version, "classic") for version in ("4.3.1", "3.9.2", "3.4.1")),
        *((version, "consumer") for version in ("4.3.1", "4.1.2", "4.0.2")),
    ],
)
def test_a_group_keeps_its_promise_under_faults(
    tmp_path: Path, version: str, protocol: str
) -> None:
    faults = ("--nemesis", "partition,pause,kill", "--setting", f"group.protocol={protocol}")
    options = ("--system", f"kafka@{version}", *GROUPS[2:], "60", *faults)
    code, found, output = run(tmp_path, *options)
    assert code == 0, output
    assert {fault.kind for fault in found.faults} == {"partition", "pause", "kill"}


#: A member commits the record that it would be delivered next, as if it had been.
TOO_FAR = """\
--- a/systems/kafka/groups.py
+++ b/systems/kafka/groups.py
@@ -1,3 +1,4 @@
     async def _commit(self, timeout_s: float, attempt: Attempt) -> dict[str, Any]:
-        standing, offsets = self._member.standing, dict(self._member.positions)
+        standing = self._member.standing
+        offsets = {log: at + 1 for log, at in self._member.positions.items()}
         if standing is None or not offsets:
"""


@pytest.mark.nightly
def test_a_group_that_commits_one_too_far_passes_records(tmp_path: Path) -> None:
    patch = tmp_path / "too_far.patch"
    patch.write_text(TOO_FAR)
    options = (*GROUPS, "20", "--nemesis", "none", "--patch", str(patch))
    code, found, output = run(tmp_path, *options)
    assert code == 1, output
    (groups,) = [result for result in found.checkers if result.checker == "groups"]
    kinds = {violation["kind"] for violation in groups.violations}
    assert kinds & {"delivered-to-nobody", "passed-before-delivery"}


@pytest.mark.nightly
def test_commits_that_the_coordinator_alone_acknowledged_are_lost(tmp_path: Path) -> None:
    setting = ("--setting", "offsets.commit.required.acks=1")
    options = ("--system", "kafka@3.9.2", *GROUPS[2:], "30", "--nemesis", "partition:leader")
    code, found, output = run(tmp_path, *options, *setting)
    assert code == 1, output
    (groups,) = [result for result in found.checkers if result.checker == "groups"]
    assert groups.figures["lost-commit"] > 0
    assert groups.figures["two-owners"] > 0
