"""``python -m splitbrain.nodes``: see ``nodes.server.commands``."""

import sys

from splitbrain.nodes.server.commands import main

if __name__ == "__main__":
    sys.exit(main())
