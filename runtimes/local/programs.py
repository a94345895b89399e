"""Looks for the programs of this machine that nodes are started from, where no image brings them.

Nodes find their programs as this process does, by PATH. Must never start or install anything.
"""

import shutil
from collections.abc import Iterable, Sequence

from splitbrain.contracts.errors import CapabilityError
from splitbrain.contracts.image import HostProgram, ImageSource


def missing_programs(images: Iterable[ImageSource]) -> list[HostProgram]:
    """Those of the images' programs that are not on PATH, each once, in their order."""
    wanted = dict.fromkeys(program for image in images for program in image.programs)
    return [program for program in wanted if shutil.which(program.name) is None]


def refuse_missing(images: Sequence[ImageSource]) -> None:
    """Refuse nodes that could not be started here.

    Raises:
        CapabilityError: a program is missing; says how to get it.
    """
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
    """The remedy, a clause that begins a sentence."""
    packages = " ".join(dict.fromkeys(program.package for program in missing))
    return f"On Debian `apt-get install {packages}` installs what is missing"
