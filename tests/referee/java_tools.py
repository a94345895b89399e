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
    return fields(_of_controllers(cluster, QUORUM, "describe", "--status"))


def replicas(cluster: Cluster) -> dict[int, str]:
    answer = _of_controllers(cluster, QUORUM, "describe", "--replication")
    rows = [line.split() for line in answer.splitlines()[1:] if line.strip()]
    return {int(row[0]): row[-1] for row in rows}


def cluster_id(cluster: Cluster) -> str:
    return fields(_of_controllers(cluster, CLUSTER, "cluster-id"))["Cluster ID"]


def topics(cluster: Cluster) -> list[str]:
    where = ("--bootstrap-server", cluster.inner_bootstrap)
    return _answer(cluster, TOPICS, *where, "--list", "--exclude-internal").split()


def fields(answer: str) -> dict[str, str]:
    """Names and values of an answer that has one of each a line."""
    pairs = (line.partition(":") for line in answer.splitlines() if ":" in line)
    return {name.strip(): value.strip() for name, _, value in pairs}


def _of_controllers(cluster: Cluster, tool: str, *command: str) -> str:
    where = ("--bootstrap-controller", cluster.inner_controllers)
    if tool == CLUSTER:  # a verb comes first
        return _answer(cluster, tool, *command, *where)
    return _answer(cluster, tool, *where, *command)


def _answer(cluster: Cluster, *command: str) -> str:
    code, output, errors = cluster.run_tool("kafka", *command)
    assert code == 0, f"{' '.join(command)}: exit code {code}\n{output}{errors}"
    return output
