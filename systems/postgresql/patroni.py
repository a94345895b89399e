"""Configuration of Patroni and of its etcd, a member of each on every node. Pure.

Patroni runs the servers: one is the primary while it holds a key of etcd's, and a standby takes
over once that key is gone. Sources: Patroni's documentation, dynamic configuration and replication
modes.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from splitbrain.contracts.system import CLIENT_PORT
from splitbrain.systems.servers import Server

_ETCD_CLIENTS, _ETCD_PEERS, _REST = 2379, 2380, 8008
#: Seconds that the primary's key lives, between two looks, and of one question to etcd. Patroni's
#: own are 30, 10 and 10; the first must hold the second and twice the third.
TTL_S: Final = 10
_LOOP_WAIT_S, _RETRY_TIMEOUT_S = 1, 3
#: Modes of replication by the value of the setting.
MODES: Final[Mapping[str, Mapping[str, bool]]] = {
    "off": {"synchronous_mode": False},
    "on": {"synchronous_mode": True},
    "strict": {"synchronous_mode": True, "synchronous_mode_strict": True},
}


def etcd_of(server: Server, others: Sequence[Server]) -> dict[str, Any]:
    """Return the configuration of a node's member of etcd."""
    here, placement = f"http://{server.placement.peer_host}", server.placement
    members = sorted((server, *others), key=lambda each: each.number)
    listens = f"http://{placement.listen_host}"
    return {
        "name": server.name,
        "data-dir": f"{placement.data_path}/etcd",
        "listen-client-urls": f"{listens}:{_ETCD_CLIENTS}",
        "advertise-client-urls": f"{here}:{_ETCD_CLIENTS}",
        "listen-peer-urls": f"{listens}:{_ETCD_PEERS}",
        "initial-advertise-peer-urls": f"{here}:{_ETCD_PEERS}",
        "initial-cluster": ",".join(
            f"{each.name}=http://{each.placement.peer_host}:{_ETCD_PEERS}" for each in members
        ),
        "initial-cluster-state": "new",
        # Patroni asks by JSON; a configuration by file has it off.
        "enable-grpc-gateway": True,
        "logger": "zap",
        "log-level": "warn",
    }


def asked_of(server: Server, others: Sequence[Server], *, asks_others: bool) -> list[str]:
    """Return ``host:port`` of the members of etcd that a node's Patroni asks.

    ``asks_others``: not that of its own node, so that a node which is cut off reads nothing old.
    """
    members = others if asks_others else (server, *others)
    return [f"{each.placement.peer_host}:{_ETCD_CLIENTS}" for each in members]


def patroni_of(
    server: Server, asked: Sequence[str], mode: str, parameters: Mapping[str, str], *, alone: bool
) -> dict[str, Any]:
    """Return the configuration of a node's Patroni; ``mode`` is one of ``MODES``.

    ``alone``: it asks these members of etcd and none else; by default it learns of all.
    """
    placement = server.placement
    client_port = placement.ports[CLIENT_PORT]
    quoted = {name: value.strip("'") for name, value in parameters.items()}
    login = {"username": "postgres"}
    return {
        "scope": "splitbrain",
        "name": server.name,
        "restapi": {
            "listen": f"{placement.listen_host}:{_REST}",
            "connect_address": f"{placement.peer_host}:{_REST}",
        },
        "log": {"traceback_level": "DEBUG"},
        "etcd3": {"hosts": asked, "use_proxies": alone},
        "bootstrap": {
            "dcs": {
                "ttl": TTL_S,
                "loop_wait": _LOOP_WAIT_S,
                "retry_timeout": _RETRY_TIMEOUT_S,
                # A primary that ended is not waited for.
                "primary_start_timeout": 0,
                **MODES[mode],
                "postgresql": {"use_pg_rewind": False, "parameters": quoted},
            },
            "initdb": [{"encoding": "UTF8"}, {"locale": "C.UTF-8"}, {"wal-segsize": "1"}],
        },
        "postgresql": {
            "listen": f"{placement.listen_host}:{client_port}",
            "connect_address": f"{placement.peer_host}:{client_port}",
            "data_dir": f"{placement.data_path}/data",
            "bin_dir": "/usr/lib/postgresql/15/bin",
            "pgpass": "/tmp/pgpass",  # noqa: S108 - within the node
            "authentication": {"superuser": login, "replication": login},
            "pg_hba": ["host all all all trust", "host replication all all trust"],
            "basebackup": [{"checkpoint": "fast"}],
            # A former primary with a log of its own copies the new one.
            "remove_data_directory_on_diverged_timelines": True,
        },
    }
