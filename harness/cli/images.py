"""Makes sure of the images of all systems, or of those that are named, as ``splitbrain test`` does.

``python -m splitbrain.harness.cli.images [SYSTEM...]``. Without names those are left out that a
program of this machine builds: the first run that needs one makes it.
"""

import sys
from collections.abc import Sequence

from splitbrain.contracts.errors import HarnessError
from splitbrain.runtimes import registry as runtimes
from splitbrain.systems import registry as systems


def main(names: Sequence[str]) -> int:
    """Find or build them in the container runtime; returns the exit code."""
    try:
        found = map(systems.system, names) if names else systems.usable_systems()
        sources = [source for system in found for source in system.images()]
        left_out = [] if names else [source for source in sources if source.build]
        sources = [source for source in sources if source not in left_out]
        runtimes.runtime("docker").prepare(sources)
    except HarnessError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    print(f"images: {', '.join(source.name for source in sources)}")
    for source in left_out:
        print(f"left out: {source.name}, which {source.build[0]} builds for the first run")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
