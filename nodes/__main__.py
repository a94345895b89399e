"""``python -m splitbrain.nodes``: see ``nodes.server.machine.commands``."""

import sys

from splitbrain.nodes.server.machine.commands import main

if __name__ == "__main__":
    sys.exit(main())
