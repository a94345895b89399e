"""A command that dies with its night.

Started as ``python -P -m splitbrain.harness.campaign.nightly.owned_step OWNER WORD...``.

A nightly process that is killed tells nobody. A step that went on without it would be done a second
time beside itself by the next one: two ingests, two JVMs, and folders pruned under a reader. So the
kernel kills the step; it can be killed at any moment as the night itself can, and what it has
started ends when it does.
"""

import os
import signal
import sys

from splitbrain.runtimes.local.kernel import die_with_parent

_EXIT_HARNESS_FAILED = 3


def main(arguments: list[str]) -> int:
    """Become the command; returns an exit code only where the owner is gone already."""
    owner, *words = arguments
    die_with_parent(signal.SIGKILL)
    # It may have died before that was said.
    if os.getppid() == int(owner):
        os.execvp(words[0], words)  # noqa: S606 - the words are the night's own
    return _EXIT_HARNESS_FAILED


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
