"""PostgreSQL in containers: a server keeps what it committed, and standbys show snapshots of it."""

from pathlib import Path

import pytest

from splitbrain.harness.cli.main import run as command
from splitbrain.systems import postgresql
from tests.containers.real_runs import leftovers, run

pytestmark = [pytest.mark.containers, pytest.mark.timeout(600)]

POSTGRESQL = ("--system", "postgresql")


def test_a_server_that_is_killed_keeps_its_transactions_serializable(tmp_path: Path) -> None:
    options = ("--nodes", "1", "--workload", "list-append", "--nemesis", "kill")
    code, found, output = run(tmp_path, *POSTGRESQL, *options, "--time-limit", "10")
    assert code == 0, output
    assert found.vacuous == ()
    assert leftovers(found.run_folder) == ""


@pytest.mark.nightly
@pytest.mark.parametrize("workload", ["register", "set", "bank", "multi-register", "rw-register"])
def test_a_primary_with_standbys_keeps_its_promise(tmp_path: Path, workload: str) -> None:
    options = ("--workload", workload, "--nemesis", "kill,pause,partition", "--time-limit", "30")
    code, _, output = run(tmp_path, *POSTGRESQL, *options)
    assert code == 0, output


@pytest.mark.nightly
@pytest.mark.parametrize("isolation", ["repeatable-read", "read-committed"])
def test_each_level_is_kept_under_kills(tmp_path: Path, isolation: str) -> None:
    options = ("--nodes", "1", "--workload", "list-append", "--nemesis", "kill,restart")
    settings = ("--setting", f"isolation={isolation}", "--time-limit", "30")
    code, _, output = run(tmp_path, *POSTGRESQL, *options, *settings)
    assert code == 0, output


@pytest.mark.nightly
def test_without_fsync_a_power_cut_takes_what_was_committed(tmp_path: Path) -> None:
    options = ("--nodes", "1", "--workload", "set", "--nemesis", "power", "--time-limit", "20")
    code, found, output = run(tmp_path, *POSTGRESQL, *options, "--setting", "fsync=off")
    assert code == 1, output
    assert {each.checker for each in found.checkers if each.verdict == "invalid"} & {
        "set-full",
        "node-health",
    }


@pytest.mark.nightly
def test_a_standby_takes_over_and_no_acknowledged_commit_is_lost(tmp_path: Path) -> None:
    plan = Path(postgresql.__file__).parent / "findings/plans/primary-cut-off.toml"
    options = ("--workload", "set", "--nemesis", str(plan), "--time-limit", "28")
    settings = ("failover=patroni", "synchronous_mode=strict", "etcd_asked=others")
    code, found, output = run(
        tmp_path,
        *POSTGRESQL,
        *options,
        *(word for setting in settings for word in ("--setting", setting)),
    )
    assert code == 0, output
    assert found.vacuous == ()


@pytest.mark.nightly
def test_the_adapter_keeps_the_rules(capsys: pytest.CaptureFixture[str]) -> None:
    code = command(["systems", "check", "postgresql", "--runtime", "docker"])
    assert code == 0, capsys.readouterr().out
