"""One bridge network per run, on a subnet that nobody else has.

The subnet is always named: some engines refuse fixed addresses otherwise. Two runs that start at
once may choose the same one; the engine refuses the second, which then takes the next.
"""

import hashlib
import ipaddress
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import docker.errors
from docker import DockerClient
from docker.models.networks import Network
from docker.types import IPAMConfig, IPAMPool

from splitbrain.contracts.errors import HarnessError
from splitbrain.contracts.names import RunId
from splitbrain.runtimes.docker.engine import engine_action
from splitbrain.runtimes.docker.names import RunMark

#: Private addresses that neither engines nor clouds hand out by default.
POOL = ipaddress.IPv4Network("10.211.0.0/16")
#: A subnet for a few dozen pods.
SUBNET_PREFIX = 26
#: The first pod's host number; lower ones are the gateway's and the engine's.
FIRST_HOST = 10

_ROUTES = Path("/proc/net/route")


def candidates(
    run_id: RunId, taken: Iterable[ipaddress.IPv4Network]
) -> Iterator[ipaddress.IPv4Network]:
    """Free subnets of the pool, beginning at one that the run's id draws."""
    subnets = list(POOL.subnets(new_prefix=SUBNET_PREFIX))
    drawn = int.from_bytes(hashlib.sha256(run_id.encode()).digest()[:4]) % len(subnets)
    occupied = list(taken)
    for subnet in [*subnets[drawn:], *subnets[:drawn]]:
        if not any(subnet.overlaps(other) for other in occupied):
            yield subnet


def pod_address(subnet: ipaddress.IPv4Network, position: int) -> str:
    """Address of the pod at ``position`` (from 0) of the deployment."""
    return str(subnet.network_address + FIRST_HOST + position)


def routed(text: str) -> list[ipaddress.IPv4Network]:
    """Networks in the form of ``/proc/net/route``, default routes apart."""
    found: list[ipaddress.IPv4Network] = []
    for line in text.splitlines()[1:]:
        fields = line.split()
        address, mask = (
            int.from_bytes(bytes.fromhex(field), "little") for field in (fields[1], fields[7])
        )
        if mask:
            found.append(ipaddress.IPv4Network((address, mask.bit_count())))
    return found


def create_network(client: DockerClient, mark: RunMark) -> tuple[Network, ipaddress.IPv4Network]:
    """Make the run's network.

    Raises:
        HarnessError: the engine refuses, or no subnet of the pool is free.
    """
    name = mark.network()
    with engine_action("make the network", name):
        for subnet in candidates(mark.run_id, _taken(client)):
            pool = IPAMPool(subnet=str(subnet), gateway=str(subnet.network_address + 1))
            try:
                network = client.networks.create(
                    name,
                    driver="bridge",
                    ipam=IPAMConfig(pool_configs=[pool]),
                    labels=mark.labels(),
                    check_duplicate=True,
                    options={
                        # Nodes have no business outside their network.
                        "com.docker.network.bridge.enable_ip_masquerade": "false",
                        "com.docker.network.bridge.host_binding_ipv4": "127.0.0.1",
                    },
                )
            except docker.errors.APIError as error:
                if "overlap" in str(error).lower():
                    continue
                raise
            return network, subnet
    raise HarnessError(
        "make the network",
        name,
        f"no subnet of {POOL} is free",
        "Remove networks that dead runs left: `splitbrain clean`",
    )


def _taken(client: DockerClient) -> list[ipaddress.IPv4Network]:
    found: list[ipaddress.IPv4Network] = []
    api: Any = client.api
    descriptions: list[dict[str, dict[str, list[dict[str, str]]]]] = api.networks()
    for description in descriptions:
        for pool in description["IPAM"].get("Config") or []:
            subnet = ipaddress.ip_network(pool.get("Subnet", "::/128"))
            if isinstance(subnet, ipaddress.IPv4Network):
                found.append(subnet)
    if _ROUTES.is_file():
        found += routed(_ROUTES.read_text())
    return found
