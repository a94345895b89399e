"""Freezing every process of a container, on engines that cannot always do it at once.

In control groups of version 1 the kernel freezes a group process by process; under load the engine
gives up on that after a moment, thaws what it froze, and says "unable to freeze". Nothing is wrong
with the container then: the next try mostly does it. Must never take any other refusal for that.
"""

from typing import Final

import docker.errors
from docker.models.containers import Container
from tenacity import Retrying, retry_if_exception, stop_after_attempt, wait_fixed

#: Tries until the engine's refusal is believed; a process amid a write is frozen when that ends.
_TRIES: Final = 50
_WAIT_S: Final = 0.2


def freeze(container: Container) -> None:
    """Freeze every process of a container; nothing where they are frozen.

    Raises:
        docker.errors.APIError: the engine refuses, or could not do it in several tries.
    """
    tries = Retrying(
        retry=retry_if_exception(_is_too_busy),
        stop=stop_after_attempt(_TRIES),
        wait=wait_fixed(_WAIT_S),
        reraise=True,
    )
    try:
        tries(container.pause)
    except docker.errors.APIError as error:
        if "already paused" not in str(error):
            raise


def _is_too_busy(error: BaseException) -> bool:
    return isinstance(error, docker.errors.APIError) and "unable to freeze" in str(error)
