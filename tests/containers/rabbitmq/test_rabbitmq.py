"""RabbitMQ in containers: quorum queues keep what they confirmed, mirrored ones lose it.

A cluster takes half a minute to start, so none of these gates.
"""

from pathlib import Path

import pytest

from splitbrain.harness.cli.main import run as command
from tests.containers.real_runs import leftovers, run

pytestmark = [pytest.mark.containers, pytest.mark.nightly, pytest.mark.timeout(900)]

RABBITMQ = ("--system", "rabbitmq")


def test_quorum_queues_keep_what_was_confirmed(tmp_path: Path) -> None:
    options = ("--nemesis", "kill,pause,partition", "--time-limit", "60")
    code, found, output = run(tmp_path, *RABBITMQ, *options)
    assert code == 0, output
    assert found.vacuous == ()
    assert leftovers(found.run_folder) == ""


def test_mirrored_queues_lose_it_where_the_cluster_heals_itself(tmp_path: Path) -> None:
    code, found, output = run(
        tmp_path,
        *(*RABBITMQ, "--nemesis", "partition", "--time-limit", "60"),
        *("--setting", "queue=mirrored", "--setting", "cluster_partition_handling=autoheal"),
        seed=334935,
    )
    assert code == 1, output
    (judged,) = (result for result in found.checkers if result.checker == "queue-totals")
    assert judged.figures["lost"] > 0
    # It converged, and nobody else had what is gone.
    assert judged.figures["perhaps-elsewhere"] == 0


def test_the_adapter_keeps_the_rules(capsys: pytest.CaptureFixture[str]) -> None:
    code = command(["systems", "check", "rabbitmq", "--runtime", "docker"])
    assert code == 0, capsys.readouterr().out
