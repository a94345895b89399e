"""NATS JetStream in containers: nothing is lost where it flushes, acknowledged messages elsewhere.

At night alone: Go must be there to build the images.
"""

from pathlib import Path

import pytest

from splitbrain.harness.cli.main import run as command
from tests.containers.real_runs import leftovers, run

pytestmark = [pytest.mark.containers, pytest.mark.nightly, pytest.mark.timeout(600)]

NATS = ("--system", "nats")


def test_a_cluster_goes_on_after_its_leader_was_killed(tmp_path: Path) -> None:
    code, found, output = run(tmp_path, *NATS, "--nemesis", "kill:leader", "--time-limit", "25")
    assert code == 0, output
    assert found.vacuous == ()
    assert {fault.kind for fault in found.faults if fault.verified} == {"kill"}
    verdicts = {result.checker: result.verdict.value for result in found.checkers}
    assert verdicts["linearizability:cas-register"] == verdicts["member-digests"] == "valid"
    assert leftovers(found.run_folder) == ""


def test_a_server_that_is_cut_off_answers_direct_gets_with_older_states(tmp_path: Path) -> None:
    code, found, output = run(
        tmp_path,
        *(*NATS, "--setting", "reads=direct"),
        *("--nemesis", "partition:follower", "--time-limit", "15"),
    )
    assert code == 1, output
    assert [result.checker for result in found.checkers if result.verdict.value == "invalid"] == [
        "linearizability:cas-register"
    ]


def test_nothing_is_lost_by_a_power_cut_where_each_message_is_flushed(tmp_path: Path) -> None:
    options = ("--workload", "set", "--nemesis", "power:all", "--time-limit", "40")
    code, _, output = run(tmp_path, *NATS, "--setting", "sync_interval=always", *options)
    assert code == 0, output


# Those of 2.12.1 forget removals, and may not agree any more (docs/systems/nats.md).
def test_servers_are_removed_and_come_back_under_load(tmp_path: Path) -> None:
    options = ("--nemesis", "remove-member,remove-member:leader", "--time-limit", "60")
    always = ("--setting", "sync_interval=always", "--workload", "set")
    code, found, output = run(tmp_path, *NATS, *always, *options)
    assert code == 0, output
    assert {fault.kind for fault in found.faults if fault.verified} == {"remove-member"}
    assert leftovers(found.run_folder) == ""


def test_the_adapter_keeps_the_rules(capsys: pytest.CaptureFixture[str]) -> None:
    code = command(["systems", "check", "nats", "--runtime", "docker"])
    assert code == 0, capsys.readouterr().out
