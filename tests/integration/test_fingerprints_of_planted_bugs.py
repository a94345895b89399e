"""The failures of all planted bugs by fingerprint: met again by another seed, told from others.

The seeds are those of ``test_planted_bugs_are_found``, which gates each change; the rules of a
fingerprint are held by ``tests/properties/checker/test_fingerprints.py``.
"""

from collections import defaultdict

import pytest

from splitbrain.checker.fingerprints import Fingerprint, fingerprint_of
from splitbrain.checker.verdict import CheckResult, Verdict
from splitbrain.contracts.names import DEFAULT_SYSTEM
from splitbrain.harness.campaign.sweep.options import SimOptions
from splitbrain.harness.campaign.sweep.trial import draw, run
from splitbrain.harness.folder.simulation_outcome import JudgedOutcome
from splitbrain.harness.judge.simulated_outcomes import judged
from tests.integration.test_planted_bugs_are_found import FOUND_BY

pytestmark = [pytest.mark.slow, pytest.mark.nightly, pytest.mark.timeout(600)]

#: Failures of each bug that are looked at.
FAILURES = 2
#: Seeds among which they are.
SEEDS_MAX = 20


def fingerprints_of(outcome: JudgedOutcome) -> list[Fingerprint]:
    """Of what an invariant and the checkers found, as ``results.json`` has it."""
    results = list(outcome.checks)
    violation = outcome.outcome.violation
    if violation is not None:
        found = {"kind": violation.invariant, "sentence": violation.problem}
        found |= {"node": violation.node, "time": violation.time_us, "step": violation.step}
        results.append(CheckResult("invariants", Verdict.INVALID, "", violations=(found,)))
    return [one for result in results if (one := fingerprint_of(result)) is not None]


@pytest.fixture(scope="module")
def failures() -> dict[str, list[list[Fingerprint]]]:
    """Bug to the fingerprints of each of its first failures."""
    found: dict[str, list[list[Fingerprint]]] = defaultdict(list)
    for bug in FOUND_BY:
        trial = SimOptions(system=DEFAULT_SYSTEM, bugs=(bug,))
        for seed in range(SEEDS_MAX):
            fingerprints = fingerprints_of(judged(run(draw(seed, trial))))
            if fingerprints:
                found[bug].append(fingerprints)
            if len(found[bug]) == FAILURES:
                break
    return found


def test_every_failure_of_a_planted_bug_has_a_fingerprint(
    failures: dict[str, list[list[Fingerprint]]],
) -> None:
    assert {bug for bug, found in failures.items() if found} == set(FOUND_BY)


def test_equal_names_are_equal_failures_and_different_ones_differ(
    failures: dict[str, list[list[Fingerprint]]],
) -> None:
    seen = {one for found in failures.values() for failure in found for one in failure}
    assert len({one.text for one in seen}) == len(seen)
    invariants = {one.kind for one in seen if one.checker == "invariants"}
    assert len([one for one in seen if one.checker == "invariants"]) == len(invariants)
    assert len(invariants) >= 9, "the planted bugs break many different invariants"


def test_a_second_failure_of_most_bugs_is_the_first_one_met_again(
    failures: dict[str, list[list[Fingerprint]]],
) -> None:
    twice = {bug: found for bug, found in failures.items() if len(found) == FAILURES}
    again = [bug for bug, (first, second) in twice.items() if set(first) & set(second)]
    assert len(again) >= 0.7 * len(twice), sorted(set(twice) - set(again))
