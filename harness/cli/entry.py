"""The program ``splitbrain``: says its version and completes a word at once, hands on the rest.

The command line takes ten times as long to load as it takes to say a version, which scripts ask
for often, and a shell asks for words at each key.
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
    from splitbrain.harness.cli.completion import ASKED, answer

    if sys.argv[1:2] == [ASKED]:
        print(answer(sys.argv[2:]), end="")
        return
    from splitbrain.harness.cli.main import main

    main()
