"""Histories of transforms, written down operation by operation, and what a checker says of them."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from splitbrain.checker.verdict import CheckResult, Verdict
from splitbrain.contracts.budget import Budget, Unlimited
from splitbrain.history.records import PairedOperation

Check = Callable[[Sequence[PairedOperation], Budget], CheckResult]


class Written:
    """A history that is written down operation by operation, one after the other."""

    def __init__(self) -> None:
        self.operations: list[PairedOperation] = []

    def add(
        self, f: str, argument: Any, result: Any = None, type_: str = "ok", final: bool = False
    ) -> "Written":
        at = 10 * len(self.operations)
        self.operations.append(
            PairedOperation(
                index=len(self.operations),
                process=0,
                f=f,
                key=None,
                argument=argument,
                result=result,
                type=type_,  # type: ignore[arg-type]
                start=at,
                end=at + 1,
                final=final,
            )
        )
        return self

    def send(self, log: str, offset: int, value: int) -> "Written":
        return self.add("send", [["send", log, value]], [["send", log, [offset, value]]])

    def transform(
        self,
        log: str,
        inputs: Mapping[int, Any],
        f: str = "transform",
        taken_as: tuple[int, int] | None = None,
    ) -> "Written":
        pairs = [[offset, value] for offset, value in inputs.items()]
        end = max(inputs, default=-1) + 1
        answer: dict[str, Any] = {"log": log, "from": min(inputs, default=0), "to": end}
        answer |= {"inputs": pairs} | ({} if taken_as is None else {"taken-as": [*taken_as]})
        return self.add(f, log, answer)

    def until(self, end: int) -> "Written":
        """Let the last operation end later: at the moment, the n-th begins at 10 n."""
        self.operations[-1] = msgspec.structs.replace(self.operations[-1], end=end)
        return self

    def shown(
        self, log: str, records: Mapping[int, Any], end: int | None = None, beyond: Any = ()
    ) -> "Written":
        end = max(records, default=-1) + 1 if end is None else end
        pairs = [[offset, value] for offset, value in records.items()]
        answer = ["poll", {log: pairs}, {log: end}, *beyond]
        return self.add("poll", [["poll", {log: 0}]], [answer], final=True)

    def committed(self, final: bool = True, **by_log: int | None) -> "Written":
        offsets = {name.removeprefix("of_"): offset for name, offset in by_log.items()}
        return self.add("fetch-offsets", None, offsets, final=final)

    def ended(
        self,
        inputs: Mapping[int, Any],
        outputs: Mapping[int, Any],
        committed: int | None = None,
        others: Mapping[int, Any] | None = None,
    ) -> "Written":
        """Final reads of everything, of log 0 as an input alone."""
        self.shown("0", inputs).shown("1", {}).shown("2", outputs).shown("3", others or {})
        return self.committed(of_0=committed, of_1=None)


def kinds_and_verdict(
    check: Check, operations: Sequence[PairedOperation]
) -> tuple[set[str], Verdict]:
    found = check(operations, Unlimited())
    return {violation["kind"] for violation in found.violations}, found.verdict
