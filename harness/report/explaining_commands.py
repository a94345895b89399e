"""Command lines that explain what was violated, for the end of a summary.

No system is loaded for it, nor any fault kind: a bare history is judged sooner than that is done.
"""

from collections.abc import Iterable

from splitbrain.checker.anomalies.explanations import anomalies
from splitbrain.checker.anomalies.names import name_of
from splitbrain.checker.explanations import checkers
from splitbrain.checker.verdict import CheckResult
from splitbrain.harness.folder.simulation_record import INVARIANTS
from splitbrain.harness.report.own_explanations import CHECKERS


def explaining_commands(results: Iterable[CheckResult]) -> list[str]:
    """Return a command for each thing that was violated, each once.

    Of each checker it is its first violation by the name of that, or the checker where the name has
    no words; none for a checker of a package that is not installed here.
    """
    known = {text.name for text in (*anomalies(), *checkers(), *CHECKERS)}
    names = (_explained_name(result, known) for result in results if result.violations)
    return [f"splitbrain explain {name.replace(' ', '-')}" for name in dict.fromkeys(names) if name]


def _explained_name(result: CheckResult, known: Iterable[str]) -> str | None:
    name = name_of(result.checker, result.violations[0])
    # Ids of invariants are the system's own, and each has its words.
    if result.checker == INVARIANTS or name in known:
        return name
    return result.checker if result.checker in known else None
