"""Everything on this machine that a run could leave behind or disturb, as comparable text.

A snapshot maps kinds (containers, rules, mounts, ...) to things, each with a key that names it and
a text that changes when it does. It reads, and changes nothing. Its sources need root.

Two comparisons: strict, for a quiet machine, where whatever appeared is left behind and whatever
vanished or changed is damage; and by tokens, for a machine on which other runs come and go, where
only things that mention one of the run's own names, addresses or numbers count.
"""

import ipaddress
import json
import re
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import docker.errors
from docker import DockerClient

from splitbrain.runtimes.docker.names import LOCK_LABEL

Snapshot = Mapping[str, Mapping[str, str]]

_PROC = Path("/proc")
_CGROUPS = Path("/sys/fs/cgroup")
#: How a container is named where the kernel tells whose a process is.
_CONTAINER = re.compile(r"\b[0-9a-f]{64}\b")
#: Groups lie no deeper: ``memory/docker/ID``, ``system.slice/docker-ID.scope``.
_GROUP_GLOBS = ("*/*", "*/*/*")
_OWN_GROUP = re.compile(r"splitbrain|[0-9a-f]{64}")
#: Counters in saved rules, and the chain's own.
_COUNTERS = re.compile(r"\[\d+:\d+\]")
#: Socket state "listening" in the kernel's tables.
_LISTENING = "0A"
#: Kinds of which a run may add: images are built, and stay.
_MAY_GROW = frozenset({"images"})


def take(client: DockerClient | None, marker: str, scratch: Path) -> Snapshot:
    """Return a snapshot now.

    Args:
        client: of the engine; None where there is none.
        marker: stands in the environment or the command line of every process of the runs.
        scratch: where the runs make their temporary files.
    """
    return {
        **(_engine(client) if client is not None else {}),
        "rules": _rules(),
        "mounts": _mounts(),
        "loop devices": _loop_devices(),
        "network namespaces": _network_namespaces(),
        "links": _links(),
        "processes": processes(marker),
        "processes of containers": _contained(),
        "control groups": _control_groups(),
        "proxies": _proxies(),
        "listening ports": _listening_ports(),
        "temporary folders": {path.name: "" for path in scratch.iterdir()},
    }


def appeared(before: Snapshot, after: Snapshot, tokens: Iterable[str] | None) -> list[str]:
    """Return the new things, as "kind: key text".

    Args:
        before: taken before the run.
        after: taken when it and its leftovers should be gone.
        tokens: what only the run's own things mention; None: whatever appeared counts.
    """
    names = None if tokens is None else list(tokens)
    return [
        f"{kind}: {key} {text}".strip()
        for kind, things in after.items()
        for key, text in things.items()
        if key not in before.get(kind, {}) and kind not in _MAY_GROW
        # Our own processes and files are told by where they are.
        if names is None
        or kind in ("processes", "temporary folders")
        or any(name in f"{key} {text}" for name in names)
    ]


def disturbed(before: Snapshot, after: Snapshot, tokens: Iterable[str] | None) -> list[str]:
    """Return the things that vanished or changed, as "kind: key, what it was -> what it is".

    Args:
        before: taken before the run.
        after: taken when it and its leftovers should be gone.
        tokens: names of the things that must stand; None: all must.
    """
    names = None if tokens is None else list(tokens)
    return [
        f"{kind}: {key}, {text or 'there'} -> {after[kind].get(key, 'gone')}"
        for kind, things in before.items()
        for key, text in things.items()
        if after[kind].get(key) != text
        if names is None or any(name in f"{key} {text}" for name in names)
    ]


def fingerprint(client: DockerClient, folder: Path) -> set[str]:
    """Names, addresses and numbers of what the runs below a folder have in the engine now."""
    api: Any = client.api
    names: set[str] = set()

    def is_mine(thing: dict[str, Any]) -> bool:
        labels: dict[str, str] = thing.get("Labels") or {}
        return labels.get(LOCK_LABEL, "").startswith(f"{folder}/")

    marked = {"label": LOCK_LABEL}
    networks: list[dict[str, Any]] = api.networks(filters=marked)
    volumes: list[dict[str, Any]] = api.volumes(filters=marked).get("Volumes") or []
    containers: list[dict[str, Any]] = api.containers(all=True, filters=marked)
    for network in filter(is_mine, networks):
        names |= {network["Id"], f"br-{network['Id'][:12]}", network["Name"]}
        pools: list[dict[str, str]] = network["IPAM"].get("Config") or []
        for pool in pools:
            names.update(_addresses(pool["Subnet"]))
    for volume in filter(is_mine, volumes):
        names.add(volume["Name"])
    for container in filter(is_mine, containers):
        names |= {container["Id"], *container["Names"]}
        try:
            details = api.inspect_container(container["Id"])
        except docker.errors.NotFound:
            # The watchdog and other runs' sweeps are at it too.
            continue
        # One that is going has no layers any more.
        layers: dict[str, Any] = details["GraphDriver"]["Data"] or {}
        names.add(str(layers.get("MergedDir", "")))
        names.add(str(details["NetworkSettings"].get("SandboxKey", "")))
    return names - {""}


def processes(marker: str) -> dict[str, str]:
    """Process id to command line of those that carry the marker."""
    commands: dict[str, str] = {}
    wanted = marker.encode()
    for entry in _numbered(_PROC):
        try:
            command = (entry / "cmdline").read_bytes()
            if wanted in command or wanted in (entry / "environ").read_bytes():
                commands[entry.name] = command.replace(b"\0", b" ").decode(errors="replace").strip()
        except OSError:
            continue
    return commands


def _contained() -> dict[str, str]:
    """Process id to the container that it is in; one that waits for a frozen disk outlives it."""
    containers: dict[str, str] = {}
    for entry in _numbered(_PROC):
        try:
            whose = _CONTAINER.search((entry / "cgroup").read_text())
        except OSError:
            continue
        if whose is not None:
            containers[entry.name] = whose.group()
    return containers


def _control_groups() -> dict[str, str]:
    """Those of containers and of local nodes: limits stand there."""
    return {
        str(path.relative_to(_CGROUPS)): ""
        for pattern in _GROUP_GLOBS
        for path in _CGROUPS.glob(pattern)
        if _OWN_GROUP.search(path.name) and path.is_dir()
    }


def _addresses(subnet: str) -> list[str]:
    """Return the subnet and its addresses, as rules write them."""
    return [f"{address}/" for address in ipaddress.ip_network(subnet)] + [subnet]


def _engine(client: DockerClient) -> dict[str, dict[str, str]]:
    api: Any = client.api
    containers: list[dict[str, Any]] = api.containers(all=True)
    networks: list[dict[str, Any]] = api.networks()
    volumes: list[dict[str, Any]] = api.volumes().get("Volumes") or []
    images: list[dict[str, Any]] = api.images(all=True)
    return {
        "containers": {c["Id"]: f"{c['Names'][0]} {c['State']} {c['ImageID']}" for c in containers},
        "networks": {n["Id"]: n["Name"] for n in networks},
        "volumes": {v["Name"]: v.get("CreatedAt", "") for v in volumes},
        "images": {i["Id"]: "" for i in images},
    }


def _rules() -> dict[str, str]:
    rules: dict[str, str] = {}
    for program in ("iptables-save", "ip6tables-save"):
        done = subprocess.run([program], capture_output=True, text=True, check=True)
        table = ""
        for line in done.stdout.splitlines():
            if line.startswith("*"):
                table = line
            elif not line.startswith("#") and line != "COMMIT":
                rule = f"{program} {table} {_COUNTERS.sub('', line).strip()}"
                rules[rule] = str(int(rules.get(rule) or 0) + 1)
    return rules


def _mounts() -> dict[str, str]:
    mounts: dict[str, str] = {}
    for line in (_PROC / "self" / "mountinfo").read_text().splitlines():
        place, _, device = line.partition(" - ")
        fields = place.split()
        mounts[f"{fields[4]} {fields[3]} {device}"] = ""
    return mounts


def _loop_devices() -> dict[str, str]:
    return {
        file.parents[1].name: file.read_text().strip()
        for file in Path("/sys/block").glob("loop*/loop/backing_file")
    }


def _network_namespaces() -> dict[str, str]:
    namespaces: dict[str, str] = {}
    for entry in _numbered(_PROC):
        try:
            namespaces[str((entry / "ns" / "net").readlink())] = ""
        except OSError:
            continue
    return namespaces


def _links() -> dict[str, str]:
    done = subprocess.run(["ip", "-j", "link"], capture_output=True, text=True, check=True)
    links: list[dict[str, Any]] = json.loads(done.stdout)
    return {
        link["ifname"]: f"{link['ifindex']} {link.get('master', '')} {link.get('operstate', '')}"
        for link in links
    }


def _proxies() -> dict[str, str]:
    proxies: dict[str, str] = {}
    for entry in _numbered(_PROC):
        try:
            arguments = (entry / "cmdline").read_bytes().decode(errors="replace").split("\0")
        except OSError:
            continue
        if Path(arguments[0]).name == "docker-proxy":
            # Addresses as rules write them, so that they are found by the same word.
            proxies[entry.name] = " ".join(
                f"{word}/" if "." in word else word for word in arguments
            )
    return proxies


def _listening_ports() -> dict[str, str]:
    ports: dict[str, str] = {}
    for table in ("tcp", "tcp6"):
        for line in (_PROC / "net" / table).read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == _LISTENING:
                address, _, port = fields[1].rpartition(":")
                ports[f"{address}:{int(port, 16)}"] = ""
    return ports


def _numbered(folder: Path) -> list[Path]:
    return [entry for entry in folder.iterdir() if entry.name.isdecimal()]
