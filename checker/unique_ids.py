"""Checker of generated ids: no two ``generate`` answer the same; linear.

Ids are unique over all keys: a key names the generator, not a name space. An unanswered
``generate`` can collide with none. Source: Jepsen's unique-ids checker.
"""

from collections.abc import Hashable, Iterable
from typing import Any

from splitbrain.checker.findings import Findings
from splitbrain.checker.models.model import freeze, text_of
from splitbrain.checker.verdict import CheckResult
from splitbrain.contracts.budget import Budget
from splitbrain.history.records import PairedOperation


def check(operations: Iterable[PairedOperation], budget: Budget) -> CheckResult:
    """Judge all ``generate`` operations of a history."""
    findings = Findings("unique-ids", budget, ("duplicated",))
    requests = [operation for operation in operations if operation.f == "generate"]

    def judge() -> tuple[dict[str, Any], str, str | None]:
        first: dict[Hashable, PairedOperation] = {}
        answered = [operation for operation in requests if operation.type == "ok"]
        for operation in answered:
            findings.poll()
            earlier = first.setdefault(freeze(operation.result), operation)
            if earlier is not operation:
                findings.note(
                    "duplicated",
                    [earlier, operation],
                    lambda earlier=earlier, operation=operation: (
                        f"The id {text_of(operation.result)} was given out twice: "
                        f"at index {earlier.index} and at index {operation.index}."
                    ),
                )
        figures = {"asked": len(requests), "acknowledged": len(answered), "distinct": len(first)}
        nothing = None if answered else "No id was ever given out, so there is nothing to judge."
        return figures, f"All {len(answered):,} ids are distinct.", nothing

    return findings.conclude(judge)
