"""Commands that judge a cluster that is there already, by their names.

Rooms that drive know no system by name, so that the names stand here.
"""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import Final

from splitbrain.contracts.experiment import Experiment
from splitbrain.contracts.trial import StandingOptions

#: Prepares a cluster; yields the experiment, and sentences about what is promised.
Verifier = Callable[[StandingOptions], AbstractContextManager[tuple[Experiment, list[str]]]]


def _kafka() -> Verifier:
    from splitbrain.systems.kafka.library import require_library

    require_library()
    from splitbrain.systems.kafka.verifying import verified

    return verified


#: Each is imported when it is asked for.
VERIFIERS: Final[Mapping[str, Callable[[], Verifier]]] = {"kafka-verify": _kafka}
