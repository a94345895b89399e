"""Option ``--patch`` of the commands that run nodes: a bug or a mend of the user's own.

A process has one set of patches, taken before anything that they change is loaded. So the command
line is started anew under the launcher, in this process' place. Source: issue 20, item 6.
"""

import os
import sys
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from splitbrain.contracts.distribution import PACKAGE
from splitbrain.contracts.errors import UsageError

#: Type of the option's parameter.
PatchFiles = Annotated[
    list[Path] | None,
    Parameter(
        name="--patch",
        negative="",
        consume_multiple=False,
        help="Unified diff of splitbrain's own source, applied in memory to this command and its "
        "nodes: a bug or a mend to try; repeatable.",
    ),
]


def start_patched(files: list[Path] | None) -> None:
    """Start this command line anew with patches applied; return where they are applied already.

    Raises:
        UsageError: one cannot be read or does not fit, or the process has others.
    """
    if not files:
        return
    from splitbrain.harness.pool.child_environment import child_environment
    from splitbrain.patched.loading import PatchedModules, installed_patches, read_patch_file
    from splitbrain.patched.patch import PatchError

    try:
        patches = [read_patch_file(file) for file in files]
        if installed := installed_patches():
            if list(installed) == patches:
                return
            raise UsageError(
                "--patch is given to a command that has patches already",
                "Name all of them with --patch, and leave out the launcher",
            )
        PatchedModules(patches, Path(__file__).parents[2])
    except PatchError as error:
        problem, _, next_step = str(error).removesuffix(".").rpartition(". ")
        raise UsageError(problem, next_step) from error
    command = [sys.executable, "-P", "-m", f"{PACKAGE}.patched", *map(str, files), "--"]
    command += ["-m", f"{PACKAGE}.harness.cli", *sys.argv[1:]]
    os.execve(sys.executable, command, child_environment())  # noqa: S606 - no shell is wanted
