"""Ways that the local runtime can go on this machine, found by trying, and programs that it has.

``namespaces``: each node has a network of its own, so that links can be cut. ``processes``: nodes
are plain processes on loopback addresses. Nothing is guessed from versions or settings: the trial
makes what a run would make, for one node, and throws it away.
"""

import contextlib
import functools
import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final, Literal

import msgspec

import splitbrain
from splitbrain.contracts.errors import UNREADABLE, CapabilityError, UsageError
from splitbrain.contracts.runtime import HostProgram, ImageSource

Way = Literal["namespaces", "processes"]

#: Environment variable that decides instead of the trial.
FORCE_VARIABLE: Final = "SPLITBRAIN_LOCAL"
#: The folder that the package is in: programs started by this room find it there.
PROJECT: Final = Path(splitbrain.__file__).resolve().parents[1]

_TRIAL_PATIENCE_S: Final = 60.0


class Mode(msgspec.Struct, frozen=True):
    """The way that runs here go."""

    way: Way
    #: Program that sets firewall rules; empty for processes.
    firewall: str = ""
    #: Abilities of the kernel on links, in the words of ``docker/pod/links.py``.
    links: tuple[str, ...] = ()
    #: Why namespaces cannot be had, one clause; empty where they can or nobody tried.
    reason: str = ""

    def text(self) -> str:
        """Return the mode in words, for people."""
        if self.way == "namespaces":
            return f"namespaces with {self.firewall}" if self.firewall else "namespaces"
        because = f": {self.reason}" if self.reason else ""
        return f"plain processes, no partitions possible{because}"


def wanted_mode(way: Way | None = None) -> Mode:
    """Return the mode to use: as the caller or the environment insists, else what works.

    Raises:
        UsageError: the environment asks for something that does not exist.
        CapabilityError: namespaces were asked for and cannot be had.
    """
    wanted = way or os.environ.get(FORCE_VARIABLE) or None
    if wanted not in {None, "namespaces", "processes"}:
        raise UsageError(
            f"{FORCE_VARIABLE} is {wanted!r}", "Set it to namespaces or processes, or not at all"
        )
    if wanted == "processes":
        return Mode("processes", reason=f"asked for by {FORCE_VARIABLE}" if way is None else "")
    found = possible_mode()
    if wanted == "namespaces" and found.way != "namespaces":
        raise CapabilityError(
            "make namespaces",
            "this machine",
            found.reason,
            f"Unset {FORCE_VARIABLE} to run plain processes, or use --runtime docker.",
        )
    return found


@functools.cache
def possible_mode() -> Mode:
    """Return the mode that this machine allows; tried once by each process."""
    errors: list[str] = []
    try:
        done = subprocess.run(
            [sys.executable, "-P", "-m", f"{__package__}.host", "trial"],
            capture_output=True,
            check=False,
            timeout=_TRIAL_PATIENCE_S,
            env=program_environment(),
        )
        errors = done.stderr.decode(errors="replace").strip().splitlines()
        found = msgspec.json.decode(done.stdout, type=dict[str, str])
    except (OSError, subprocess.TimeoutExpired) as error:
        return Mode("processes", reason=f"the trial failed: {error}")
    except UNREADABLE:
        return Mode("processes", reason=errors[-1] if errors else "the trial said nothing")
    if "firewall" in found:
        links = tuple(found.get("links", "").split())
        return Mode("namespaces", firewall=found["firewall"], links=links)
    return Mode("processes", reason=found.get("problem", "no reason given"))


def program_environment() -> dict[str, str]:
    """Return the environment of programs of this room: they find the project's packages."""
    path = os.pathsep.join(filter(None, [str(PROJECT), os.environ.get("PYTHONPATH")]))
    return {**os.environ, "PYTHONPATH": path}


def missing_programs(images: Iterable[ImageSource]) -> list[HostProgram]:
    """Those of the images' programs that are not on PATH, each once, in their order."""
    wanted = dict.fromkeys(program for image in images for program in image.programs)
    return [program for program in wanted if shutil.which(program.name) is None]


def program_digests(images: Iterable[ImageSource]) -> dict[str, str]:
    """Return the digests of the images' programs on this machine, by names without a path.

    Those that cannot be read are left out.
    """
    found: dict[str, str] = {}
    for program in dict.fromkeys(program for image in images for program in image.programs):
        with contextlib.suppress(OSError):
            if (place := shutil.which(program.name)) is not None:
                with Path(place).open("rb") as file:
                    digest = hashlib.file_digest(file, "sha256").hexdigest()
                found[f"program {program.name}"] = f"sha256:{digest}"
    return found


def refuse_missing(images: Sequence[ImageSource]) -> None:
    """Raise CapabilityError where a program of these images is missing; says how to get it."""
    missing = missing_programs(images)
    if not missing:
        return
    names = " and ".join(program.name for program in missing)
    is_one = len(missing) == 1
    raise CapabilityError(
        "start nodes as processes of this machine",
        "runtime local",
        f"the program{'' if is_one else 's'} {names} {'is' if is_one else 'are'} not on PATH",
        f"{how_to_get(missing)}, or use --runtime docker, whose images bring them",
    )


def how_to_get(missing: Sequence[HostProgram]) -> str:
    """Return the remedy, a clause that begins a sentence."""
    packages = " ".join(dict.fromkeys(program.package for program in missing))
    return f"On Debian `apt-get install {packages}` installs what is missing"
