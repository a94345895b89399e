"""Results of a judgement, for tests in which most of them do not matter."""

import msgspec

from splitbrain.checker.verdict import Verdict
from splitbrain.harness.folder.results import Results

_RESULTS = Results(
    schema=1,
    run="20261121T020000Z-7",
    test="kraft-register",
    system="kraft",
    workload="register",
    seed=7,
    runtime="docker",
    verdict=Verdict.VALID,
    vacuous=(),
    exit_code=0,
    checkers=(),
    operations={},
    faults=(),
    elections=1,
    epochs=(1,),
    longest_unavailability_ms=43,
    run_folder="runs/x",
    reproduce="splitbrain test",
)


def results_with(**changes: object) -> Results:
    """Results of a valid run without faults, but for what is changed."""
    return msgspec.structs.replace(_RESULTS, **changes)
