"""A command that dies with its night.

Started as ``python -P -m splitbrain.harness.campaign.nightly.owned_step OWNER WORD...``.

A killed nightly process reports to nobody. If its step went on, the next process would do the step
a second time beside it: two ingests, two JVMs, folders pruned under a reader. So the kernel kills
the step with its owner; the step can be killed at any moment, and its own children end with it.
"""

import os
import signal
import sys

from splitbrain.runtimes.local.kernel import die_with_parent

_EXIT_HARNESS_FAILED = 3


def main(arguments: list[str]) -> int:
    """Become the command; return an exit code only where the owner is gone already."""
    owner, *command = arguments
    die_with_parent(signal.SIGKILL)
    # It may have died before the request to the kernel.
    if os.getppid() == int(owner):
        os.execvp(command[0], command)  # noqa: S606 - the command is the night's own
    return _EXIT_HARNESS_FAILED


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
