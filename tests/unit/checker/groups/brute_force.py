"""Oracle of small histories of groups, slow and independent of the checker: kinds of violations.

Committed offsets are decided by trying all orders of all subsets of a log's commits around each
answer; everything else is a question about all pairs.
"""

from collections.abc import Iterator
from itertools import permutations
from typing import Any

from splitbrain.history.records import PairedOperation

FAR = 10**9


def kinds_of(history: list[PairedOperation]) -> set[str]:
    """Return the kinds of violations of a history."""
    facts = Facts(history)
    return {*facts.owners(), *facts.outdated(), *facts.offsets(), *facts.deliveries()}


def number(answer: dict[str, Any]) -> int:
    return answer["generation"] if "generation" in answer else answer["epoch"]


class Facts:
    def __init__(self, history: list[PairedOperation]) -> None:
        ok = [one for one in history if one.type == "ok"]
        self.consumes = [one for one in ok if one.f == "consume"]
        self.fetches = [one for one in ok if one.f == "fetch-offsets"]
        self.commits: list[tuple[PairedOperation, dict[str, Any]]] = []
        for one in history:
            if one.f == "commit" and one.type == "ok":
                self.commits.append((one, one.result))
            if one.f == "commit" and one.type == "info":
                before = [
                    each
                    for each in self.consumes
                    if each.process == one.process and each.index < one.index
                ]
                if before:
                    last = before[-1].result
                    self.commits.append((one, {**last, "offsets": last["positions"]}))
        self.visible: dict[str, set[tuple[int, str]]] = {}
        for one in ok:
            if one.f == "poll" and one.final:
                for log, records in one.result[0][1].items():
                    self.visible.setdefault(log, set()).update((at, value) for at, value in records)

    def owners(self) -> Iterator[str]:
        for one in self.consumes:
            for other in self.consumes:
                first, second = one.result, other.result
                is_shared = {*first["logs"]} & {*second["logs"]}
                is_at_once = number(first) == number(second)
                if is_shared and is_at_once and first["member"] != second["member"]:
                    yield "two-owners"

    def is_over(self, answer: dict[str, Any], log: str, one: PairedOperation) -> bool:
        """Whether this answer to a consume says that a standing is over, as far as a log goes."""
        told = one.result
        if number(told) <= number(answer):
            return False
        return "generation" in told or (log in told["logs"] and told["member"] != answer["member"])

    def outdated(self) -> Iterator[str]:
        for commit, answer in self.commits:
            for log in answer["offsets"] if commit.type == "ok" else ():
                for one in self.consumes:
                    if self.is_over(answer, log, one) and one.end < commit.start:  # type: ignore[operator]
                        yield "outdated-commit-accepted"

    def offsets(self) -> Iterator[str]:
        reads = [(one, log, at, None) for one in self.fetches for log, at in one.result.items()]
        reads += [
            (one, log, at, one.result)
            for one in self.consumes
            for log, at in one.result["began"].items()
        ]
        for read, log, at, asked in reads:
            commits: list[tuple[int, int, int, bool, bool]] = []
            for commit, answer in self.commits:
                if log not in answer["offsets"]:
                    continue
                is_sure = commit.type == "ok"
                last = commit.end if is_sure else FAR
                if not is_sure:
                    over = [o.end or 0 for o in self.consumes if self.is_over(answer, log, o)]
                    last = min([FAR, *over])
                assert last is not None
                is_known = read.final or (asked is not None and self.precedes(answer, asked))
                if last >= commit.start:
                    offset = answer["offsets"][log]
                    commits.append((offset, commit.start, last, is_sure, is_known))
            if explains(commits, at, read, is_held_to_all=True):
                continue
            is_asked = any(at == one[0] and one[1] <= (read.end or 0) for one in commits)
            # Null is from before all commits.
            if at is not None and not is_asked:
                yield "phantom-offset"
                continue
            is_stale = explains(commits, at, read, is_held_to_all=False)
            yield "stale-offset" if is_stale else "lost-commit"

    @staticmethod
    def precedes(answer: dict[str, Any], asked: dict[str, Any]) -> bool:
        is_lower = number(answer) < number(asked)
        return is_lower and ("generation" in answer or answer["member"] != asked["member"])

    def deliveries(self) -> Iterator[str]:
        passings = [
            (answer["offsets"][log], log, commit.start)
            for commit, answer in self.commits
            if commit.type == "ok"
            for log in answer["offsets"]
        ]
        told = [one.result for one in self.fetches] + [one.result["began"] for one in self.consumes]
        for one, offsets in zip([*self.fetches, *self.consumes], told, strict=True):
            passings += [(at, log, one.end or 0) for log, at in offsets.items() if at is not None]
        for offset, log, by in passings:
            for at, value in self.visible.get(log, ()):
                ends = [
                    one.end or 0
                    for one in self.consumes
                    if [at, value] in one.result["records"].get(log, [])
                ]
                if at < offset and not ends:
                    yield "delivered-to-nobody"
                elif at < offset and min(ends) > by:
                    yield "passed-before-delivery"


def explains(
    commits: list[tuple[int, int, int, bool, bool]],
    at: int | None,
    read: PairedOperation,
    *,
    is_held_to_all: bool,
) -> bool:
    """Whether some order of commits makes this the answer, the read at its place among them.

    Where the read is not held to all of them, those that it need not know may come later.
    """
    sure = [commit for commit in commits if commit[3]]
    open_ones = [commit for commit in commits if not commit[3]]
    for mask in range(2 ** len(open_ones)):
        chosen = [*sure, *(one for n, one in enumerate(open_ones) if mask >> n & 1)]
        for order in permutations(chosen):
            if any(
                later[2] < earlier[1]
                for place, earlier in enumerate(order)
                for later in order[place + 1 :]
            ):
                continue
            for place in range(len(order) + 1):
                before, after = order[:place], order[place:]
                if any((read.end or 0) < commit[1] for commit in before):
                    continue
                if any(
                    commit[3] and commit[2] < read.start and (is_held_to_all or commit[4])
                    for commit in after
                ):
                    continue
                if (before[-1][0] if before else None) == at:
                    return True
    return False
