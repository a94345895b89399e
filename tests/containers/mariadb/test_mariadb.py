"""MariaDB with Galera in containers: it keeps what it promises under faults, and comes back."""

from pathlib import Path

import pytest

from splitbrain.harness.cli.main import run as command
from tests.containers.real_runs import leftovers, run

pytestmark = [pytest.mark.containers, pytest.mark.timeout(900)]

MARIADB = ("--system", "mariadb")
ALL_KILLED = str(Path("systems/mariadb/findings/plans/kill-of-all.toml").resolve())


def test_a_cluster_keeps_its_promise_while_a_server_is_killed(tmp_path: Path) -> None:
    options = ("--workload", "list-append", "--nemesis", "kill", "--time-limit", "10")
    code, found, output = run(tmp_path, *MARIADB, *options)
    assert code == 0, output
    assert found.vacuous == ()
    assert leftovers(found.run_folder) == ""


@pytest.mark.nightly
def test_a_cluster_that_is_killed_whole_comes_back_with_all_that_it_flushed(
    tmp_path: Path,
) -> None:
    options = ("--workload", "set", "--nemesis", ALL_KILLED, "--time-limit", "15")
    code, found, output = run(tmp_path, *MARIADB, *options, "--setting", "wsrep_sync_wait=1")
    assert code == 0, output
    assert found.vacuous == ()


@pytest.mark.nightly
@pytest.mark.parametrize("workload", ["set", "bank", "rw-register"])
def test_a_cluster_keeps_its_promise_under_faults(tmp_path: Path, workload: str) -> None:
    options = ("--workload", workload, "--nemesis", "pause,partition", "--time-limit", "30")
    code, _, output = run(tmp_path, *MARIADB, *options, "--setting", "wsrep_sync_wait=1")
    assert code == 0, output


@pytest.mark.nightly
@pytest.mark.parametrize("isolation", ["repeatable-read", "serializable", "read-committed"])
def test_each_level_is_kept_by_one_server(tmp_path: Path, isolation: str) -> None:
    options = ("--workload", "list-append", "--nemesis", "none", "--time-limit", "20")
    settings = ("clients=one", "innodb_snapshot_isolation=ON", f"isolation={isolation}")
    words = [word for setting in settings for word in ("--setting", setting)]
    code, _, output = run(tmp_path, *MARIADB, *options, *words)
    assert code == 0, output


@pytest.mark.nightly
def test_the_adapter_keeps_the_rules(capsys: pytest.CaptureFixture[str]) -> None:
    code = command(["systems", "check", "mariadb", "--runtime", "docker"])
    assert code == 0, capsys.readouterr().out
