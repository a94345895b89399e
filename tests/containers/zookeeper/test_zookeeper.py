"""ZooKeeper in containers: linearizable where it promises so, stale where it does not."""

from pathlib import Path

import pytest

from splitbrain.harness.cli.main import run as command
from tests.containers.real_runs import leftovers, run

pytestmark = [pytest.mark.containers, pytest.mark.timeout(600)]

#: Workloads whose operations are transactions, or that are about sessions and leases.
TRANSACTED = ("bank", "counter", "kv", "lease", "multi-register", "mutex", "sessions", "unique-ids")
ZOOKEEPER = ("--system", "zookeeper")


def test_an_ensemble_goes_on_after_its_leader_was_killed(tmp_path: Path) -> None:
    options = ("--nemesis", "kill:leader", "--time-limit", "10")
    code, found, output = run(tmp_path, *ZOOKEEPER, *options)
    assert code == 0, output
    assert found.vacuous == ()
    assert {fault.kind for fault in found.faults if fault.verified} == {"kill"}
    verdicts = {result.checker: result.verdict.value for result in found.checkers}
    assert verdicts["linearizability:cas-register"] == verdicts["member-digests"] == "valid"
    digests = next(result for result in found.checkers if result.checker == "member-digests")
    assert "3 members told equal digests" in digests.reason
    assert leftovers(found.run_folder) == ""


@pytest.mark.nightly
def test_a_follower_that_is_cut_off_answers_unsynced_reads_with_older_states(
    tmp_path: Path,
) -> None:
    code, found, output = run(
        tmp_path,
        *(*ZOOKEEPER, "--setting", "reads=local"),
        *("--nemesis", "partition:follower", "--time-limit", "15"),
    )
    assert code == 1, output
    assert "Stale read" in output
    assert [result.checker for result in found.checkers if result.verdict.value == "invalid"] == [
        "linearizability:cas-register"
    ]


@pytest.mark.nightly
@pytest.mark.parametrize("workload", TRANSACTED)
def test_what_is_asked_at_one_moment_is_so_under_faults(workload: str, tmp_path: Path) -> None:
    options = ("--workload", workload, "--nemesis", "kill,pause,partition", "--time-limit", "20")
    code, found, output = run(tmp_path, *ZOOKEEPER, *options)
    assert code == 0, output
    assert found.vacuous == ()


@pytest.mark.nightly
@pytest.mark.parametrize("workload", ["register", "set", "queue"])
def test_nothing_is_lost_by_a_power_cut(workload: str, tmp_path: Path) -> None:
    options = ("--workload", workload, "--nemesis", "power,power:all", "--time-limit", "25")
    code, _, output = run(tmp_path, *ZOOKEEPER, *options)
    assert code == 0, output


@pytest.mark.nightly
def test_the_adapter_keeps_the_rules(capsys: pytest.CaptureFixture[str]) -> None:
    code = command(["systems", "check", "zookeeper", "--runtime", "docker"])
    assert code == 0, capsys.readouterr().out
