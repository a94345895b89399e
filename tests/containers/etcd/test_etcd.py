"""etcd in containers: linearizable where it promises so, stale where it does not.

At night alone: Go must be there to build the images.
"""

from pathlib import Path

import pytest

from splitbrain.harness.cli.main import run as command
from tests.containers.real_runs import leftovers, run

pytestmark = [pytest.mark.containers, pytest.mark.nightly, pytest.mark.timeout(600)]

#: Workloads whose operations are transactions, or that are about sessions and leases.
TRANSACTED = ("bank", "counter", "kv", "lease", "multi-register", "mutex", "sessions", "unique-ids")
ETCD = ("--system", "etcd")


def test_a_cluster_goes_on_after_its_leader_was_killed(tmp_path: Path) -> None:
    code, found, output = run(tmp_path, *ETCD, "--nemesis", "kill:leader", "--time-limit", "10")
    assert code == 0, output
    assert found.vacuous == ()
    assert {fault.kind for fault in found.faults if fault.verified} == {"kill"}
    verdicts = {result.checker: result.verdict.value for result in found.checkers}
    assert verdicts["linearizability:cas-register"] == verdicts["member-digests"] == "valid"
    digests = next(result for result in found.checkers if result.checker == "member-digests")
    assert "3 members told equal digests" in digests.reason
    assert leftovers(found.run_folder) == ""


def test_a_member_that_is_cut_off_answers_serializable_reads_with_older_states(
    tmp_path: Path,
) -> None:
    code, found, output = run(
        tmp_path,
        *(*ETCD, "--setting", "reads=serializable"),
        *("--nemesis", "partition:follower", "--time-limit", "15"),
    )
    assert code == 1, output
    assert "Stale read" in output
    assert [result.checker for result in found.checkers if result.verdict.value == "invalid"] == [
        "linearizability:cas-register"
    ]


@pytest.mark.parametrize("version", ["3.6.16", "3.5.2"])
def test_members_are_removed_and_replaced_under_load(version: str, tmp_path: Path) -> None:
    options = ("--nemesis", "remove-member,remove-member:leader", "--time-limit", "40")
    code, found, output = run(tmp_path, "--system", f"etcd@{version}", *options)
    assert code == 0, output
    assert {fault.kind for fault in found.faults if fault.verified} == {"remove-member"}
    assert all(fault.healed for fault in found.faults if fault.verified)
    assert leftovers(found.run_folder) == ""


@pytest.mark.parametrize("workload", TRANSACTED)
def test_what_is_asked_at_one_moment_is_so_under_faults(workload: str, tmp_path: Path) -> None:
    options = ("--workload", workload, "--nemesis", "kill,pause,partition", "--time-limit", "20")
    code, found, output = run(tmp_path, *ETCD, *options)
    assert code == 0, output
    assert found.vacuous == ()


@pytest.mark.parametrize("workload", ["register", "set", "queue"])
def test_nothing_is_lost_by_a_power_cut(workload: str, tmp_path: Path) -> None:
    options = ("--workload", workload, "--nemesis", "power,power:all", "--time-limit", "25")
    code, _, output = run(tmp_path, *ETCD, *options)
    assert code == 0, output


def test_the_adapter_keeps_the_rules(capsys: pytest.CaptureFixture[str]) -> None:
    code = command(["systems", "check", "etcd", "--runtime", "docker"])
    assert code == 0, capsys.readouterr().out
