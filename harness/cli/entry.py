"""The program ``splitbrain``: says its version at once, and hands everything else on.

The command line takes ten times as long to load as it takes to say a version, which scripts ask
for often.
"""

import sys
from importlib import metadata

from splitbrain.contracts.distribution import PACKAGE


def start() -> None:
    """Carry out the command line; ends the process with its exit code."""
    if sys.argv[1:] in (["--version"], ["-V"]):
        try:
            print(metadata.version(PACKAGE))
        except metadata.PackageNotFoundError:
            pass
        else:
            return
    from splitbrain.harness.cli.main import main

    main()
