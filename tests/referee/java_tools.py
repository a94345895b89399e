"""Kafka's own Java tools, run beside the cluster as its administrators run them."""

from typing import Final

from tests.referee.cluster import Cluster

QUORUM: Final = "org.apache.kafka.tools.MetadataQuorumCommand"
CLUSTER: Final = "org.apache.kafka.tools.ClusterTool"
TOPICS: Final = "org.apache.kafka.tools.TopicCommand"
CONFIGS: Final = "kafka.admin.ConfigCommand"
FEATURES: Final = "org.apache.kafka.tools.FeatureCommand"
ELECTIONS: Final = "org.apache.kafka.tools.LeaderElectionCommand"


def quorum_status(cluster: Cluster) -> dict[str, str]:
    """Run ``kafka-metadata-quorum describe --status`` at the controllers."""
    return fields(
        _answer(
            cluster,
            QUORUM,
            *("--bootstrap-controller", cluster.inner_controllers),
            *("describe", "--status"),
        )
    )


def replicas(cluster: Cluster) -> dict[int, str]:
    """Return replicas of the metadata log and their roles, by ``describe --replication``."""
    answer = _answer(
        cluster,
        QUORUM,
        *("--bootstrap-controller", cluster.inner_controllers),
        *("describe", "--replication"),
    )
    rows = [line.split() for line in answer.splitlines()[1:] if line.strip()]
    return {int(row[0]): row[-1] for row in rows}


def cluster_id(cluster: Cluster) -> str:
    """Run ``kafka-cluster cluster-id`` at the controllers."""
    answer = _answer(
        cluster, CLUSTER, "cluster-id", "--bootstrap-controller", cluster.inner_controllers
    )
    return fields(answer)["Cluster ID"]


def topics(cluster: Cluster) -> list[str]:
    """Run ``kafka-topics --list`` for the users' topics at the brokers."""
    answer = _answer(
        cluster,
        TOPICS,
        *("--bootstrap-server", cluster.inner_bootstrap),
        *("--list", "--exclude-internal"),
    )
    return answer.split()


def fields(answer: str) -> dict[str, str]:
    """Names and values of an answer that has one of each a line."""
    pairs = (line.partition(":") for line in answer.splitlines() if ":" in line)
    return {name.strip(): value.strip() for name, _, value in pairs}


def _answer(cluster: Cluster, *command: str) -> str:
    code, output, errors = cluster.run_tool("kafka", *command)
    assert code == 0, f"{' '.join(command)}: exit code {code}\n{output}{errors}"
    return output
