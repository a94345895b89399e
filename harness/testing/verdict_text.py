"""The sentences of a verdict that a failed test shows."""

from collections.abc import Iterator

from splitbrain.checker.verdict import Verdict
from splitbrain.harness.folder.results import Results, leading_sentence


def why_it_fails(results: Results, seed: int) -> str:
    """Return the verdict's sentences, and where all of it is to be seen."""
    return "\n".join(_lines(results, seed))


def _lines(results: Results, seed: int) -> Iterator[str]:
    yield f"{results.headline}: {leading_sentence(results)}"
    for checker in results.checkers:
        if checker.verdict is Verdict.VALID:
            continue
        yield f"{checker.checker}: {checker.verdict.value}: {checker.reason}"
        for violation in checker.violations:
            # The first one is often the reason itself.
            if (sentence := str(violation.get("sentence", ""))) not in checker.reason:
                yield f"  {sentence}"
    yield from results.vacuous
    yield from results.problems
    yield f"seed {seed}, run folder {results.run_folder}"
