"""The looks of ``splitbrain doctor`` at what single families of faults need of this machine.

Whether the runtimes can is asked of the runtimes' own trials; the rest is read where the kernel
tells it. Must never load a module or make a device: a machine is looked at, not prepared.
"""

from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Final

from splitbrain.contracts.errors import HarnessError
from splitbrain.harness.cli.doctor import Finding

_CGROUPS: Final = Path("/sys/fs/cgroup")
_FILE_SYSTEMS: Final = Path("/proc/filesystems")
_LOOP_CONTROL: Final = Path("/dev/loop-control")

#: Word of the runtimes' trials, what it is called, what it serves, what to do without it.
_MEANS: Final = (
    (
        "netem",
        "delay, jitter and reorder by the kernel",
        "The packet queue does the same; `modprobe sch_netem` where the kernel has it as a module",
    ),
    (
        "queue",
        "every duplicate, and all that netem does where there is none",
        "Use a kernel with NFQUEUE (`modprobe nfnetlink_queue xt_NFQUEUE`), or netem",
    ),
    ("rate", "rate limits", "Use a kernel with sch_htb and cls_u32, or leave rate out"),
)
_NAMES: Final[Mapping[str, str]] = {"queue": "packet queue", "rate": "htb"}


def look_at_link_means() -> Sequence[Finding]:
    """Tell what each runtime's kernel can do to packets, by its own trial."""
    means = {**_docker_means(), **_local_means()}
    if not means:
        nobody = "neither runtime docker nor namespaces can be had here"
        return [Finding("links", "no", nobody, "Only faults of links need them")]
    findings: list[Finding] = []
    for word, use, next_step in _MEANS:
        able = [runtime for runtime, found in means.items() if word in found]
        problem = None if able else f"no runtime's kernel has it; it serves {use}"
        name, detail = f"links: {_NAMES.get(word, word)}", f"{use}; {' and '.join(able)}"
        findings.append(Finding.tried(name, problem, detail, next_step))
    return findings


def _docker_means() -> dict[str, frozenset[str]]:
    from splitbrain.runtimes.docker.engine import connect
    from splitbrain.runtimes.docker.images import POD, Images
    from splitbrain.runtimes.docker.links import engine_means

    try:
        with closing(connect()) as client:
            tag = Images(client).tags(())[POD.name]
            return {"docker": engine_means(client, tag)}
    except HarnessError:
        return {}


def _local_means() -> dict[str, frozenset[str]]:
    from splitbrain.runtimes.local.mode import possible_mode

    mode = possible_mode()
    return {"local": frozenset(mode.links)} if mode.way == "namespaces" else {}


def look_at_clock_library() -> Sequence[Finding]:
    """The library that wrong clocks of local nodes are made with; containers bring their own."""
    from splitbrain.runtimes.local.clocks import clock_library

    library = clock_library()
    problem = None if library else "not on this machine"
    next_step = "`apt-get install libfaketime`; only clock faults of the local runtime need it"
    return [Finding.tried("libfaketime", problem, str(library), next_step)]


def look_at_control_groups() -> Sequence[Finding]:
    """Tell the version of control groups, and whether the local runtime may make its own."""
    from splitbrain.runtimes.control_groups import possible_bases

    if (_CGROUPS / "cgroup.controllers").is_file():
        version = "v2"
    elif (_CGROUPS / "memory").is_dir():
        version = "v1, where a limit below what is in use takes a kill"
    else:
        next_step = "Mount them; only the faults cpu and memory need them"
        return [Finding("control groups", "no", f"none below {_CGROUPS}", next_step)]
    bases = sorted(possible_bases())
    problem = None if bases else f"{version}; this user can make none"
    next_step = "Only cpu and memory of the local runtime need that: be root, or use docker"
    detail = f"{version}; local: {' and '.join(bases)}"
    return [Finding.tried("control groups", problem, detail, next_step)]


def look_at_disk_parts() -> Sequence[Finding]:
    """Tell what nodes' disks are made of here; the engine most often shares this kernel."""
    loop = None if _LOOP_CONTROL.exists() else f"there is no {_LOOP_CONTROL}"
    is_named = "ext4" in _FILE_SYSTEMS.read_text().split()
    ext4 = None if is_named else "the kernel does not name it"
    next_step = "`modprobe ext4`, or a kernel that has it; disk faults need it"
    used = "disk faults in containers use"
    return [
        Finding.tried(
            "loop devices", loop, f"{used} them", "`modprobe loop`; disk faults need them"
        ),
        Finding.tried("ext4", ext4, f"{used} it", next_step),
    ]
