"""``splitbrain kafka-verify`` on unmodified brokers, with controllers of either make."""

from pathlib import Path

import pytest

from tests.containers.real_runs import found_in, ran, verdicts
from tests.referee.cluster import Cluster

pytestmark = [pytest.mark.containers, pytest.mark.timeout(600)]


def own_topics(cluster: Cluster) -> list[str]:
    code, output, errors = cluster.run_tool(
        *("kafka", "org.apache.kafka.tools.TopicCommand", "--list"),
        *("--bootstrap-server", cluster.inner_bootstrap),
    )
    assert code == 0, errors
    return [line for line in output.splitlines() if line.startswith("splitbrain")]


def verify(cluster: Cluster, folder: Path, *options: str) -> tuple[int, str]:
    before = own_topics(cluster)
    code, output, errors = ran(
        *("kafka-verify", cluster.bootstrap, "--time-limit", "20", "--seed", "3"),
        *("--no-analyze", "--runs-folder", str(folder), *options),
    )
    assert verdicts(found_in(folder, output + errors))["log"] == "valid", output + errors
    assert own_topics(cluster) == before
    return code, output + errors


def test_a_standing_cluster_is_judged_and_left_as_it_was(cluster: Cluster, tmp_path: Path) -> None:
    # The transactions' own topic wants three brokers.
    code, output = verify(cluster, tmp_path, "--workload-option", "transactions=no")
    assert code == 0, output
    assert "2 brokers" in output


@pytest.mark.nightly
def test_transactions_are_judged_too(trio: Cluster, tmp_path: Path) -> None:
    code, output = verify(trio, tmp_path)
    assert code == 0, output
