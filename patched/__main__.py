"""Launcher: runs a module with patches applied; nothing else of the project knows of them.

    python -m splitbrain.patched FILE [FILE ...] -- -m MODULE [ARGUMENT ...]

Exit code 64 and one sentence for a patch or a command line that cannot be used.
"""

import runpy
import sys
import traceback
from pathlib import Path
from typing import Final

from splitbrain.patched.loading import install_patches, read_patch_file
from splitbrain.patched.patch import PatchError

_USAGE: Final = "usage: python -m splitbrain.patched FILE [FILE ...] -- -m MODULE [ARGUMENT ...]"
_EXIT_USAGE: Final = 64


def main() -> None:
    """Installs the patches and becomes the module."""
    arguments = sys.argv[1:]
    border = arguments.index("--") if "--" in arguments else 0
    files, command = arguments[:border], arguments[border + 1 :]
    if not files or command[:1] != ["-m"] or len(command) == 1:
        sys.stderr.write(f"{_USAGE}\n")
        sys.exit(_EXIT_USAGE)
    try:
        install_patches([read_patch_file(Path(file)) for file in files])
    except PatchError as error:
        sys.stderr.write(f"{error}\n")
        sys.exit(_EXIT_USAGE)
    # The interpreter's own hook prints lines of the file as it is on disk.
    sys.excepthook = traceback.print_exception
    sys.argv = command[1:]
    runpy.run_module(command[1], run_name="__main__", alter_sys=True)


main()
