"""Replay of a saved scenario: the interface of a world's regression test.

``splitbrain shrink RUN --save-test FILE`` writes tests that call it. A scenario as text may leave
out defaults. It stands for one world as long as the nodes take the same steps: changed code may
never meet the failure again, so a test of correct code stays green, and one that expects a planted
bug then asks to be shrunk anew.
"""

from collections.abc import Sequence

import msgspec

from splitbrain.contracts.errors import UsageError
from splitbrain.contracts.scenario import Scenario
from splitbrain.harness.campaign.sweep.trial import run
from splitbrain.harness.folder.scenario_file import decode_scenario
from splitbrain.harness.judge.simulated_outcomes import judged
from splitbrain.history.json_problems import in_words


def replays(scenario: str, *, bugs: Sequence[str] | None = None) -> tuple[str, ...]:
    """Run a saved scenario; return the violated invariant's id and names of checkers, () if none.

    ``scenario`` is JSON; ``bugs`` replace its planted ones.

    Raises:
        UsageError: the text is no scenario, or names something that does not exist.
    """
    return judged(run(read_saved(scenario, bugs=bugs))).failed_by


def read_saved(scenario: str, *, bugs: Sequence[str] | None = None) -> Scenario:
    """Read a scenario; raise UsageError if the text is none."""
    try:
        saved = decode_scenario(scenario)
    except (ValueError, RecursionError) as error:
        raise UsageError(
            f"the saved scenario cannot be read: {in_words(error)}",
            "Correct it, or save it again with `splitbrain shrink RUN --save-test FILE`",
        ) from error
    return saved if bugs is None else msgspec.structs.replace(saved, bugs=tuple(bugs))
