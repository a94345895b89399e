"""Checker of running members' digests: one position in one scope has one digest.

A member behind the others is compared with what they told when they stood where it stands, never
with what they tell now; positions of another scope are others. Like logs that differ, digests that
differ convict whatever faults there were: a member that lost its disk, or was put back, is at worst
behind, and the state at a position is one. A member that did not run was not asked.

Must never take silence for agreement: without two members at one position the verdict is
``unknown``, and so it is where those that ran at the end did not come to stand at one.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from splitbrain.checker.evidence import Evidence
from splitbrain.checker.findings import NAMED_MAX, Poll, Undecided
from splitbrain.checker.verdict import CheckResult, Verdict
from splitbrain.contracts.budget import Budget
from splitbrain.contracts.member_digest import DigestAnswer, MemberDigest
from splitbrain.contracts.words import counted

NAME: Final = "member-digests"
_DIFFER: Final = "digests-differ"
_NS_PER_S: Final = 1e9

#: Scope and position.
_Place = tuple[str, int]
#: Digest to the first answer of each node that told it.
_Told = dict[str, dict[str, DigestAnswer]]


def check(evidence: Evidence, budget: Budget) -> CheckResult:
    """Judge every digest that a member told."""
    places: dict[_Place, _Told] = {}
    poll = Poll(budget)
    unfinished = ""
    try:
        for answer in evidence.digests:
            poll()
            if answer.told is not None:
                told = places.setdefault((answer.told.scope, answer.told.position), {})
                told.setdefault(answer.told.digest, {}).setdefault(answer.node, answer)
    except Undecided as ended:
        unfinished = f"Not finished: {ended}."
    differing = [(place, told) for place, told in places.items() if len(told) > 1]
    violations = tuple(_difference(place, told) for place, told in differing[:NAMED_MAX])
    compared = {place: nodes for place, told in places.items() if len(nodes := _nodes(told)) > 1}
    figures = {
        "members": len({answer.node for answer in evidence.digests}),
        "digests": sum(answer.told is not None for answer in evidence.digests),
        "positions-compared": len(compared),
        "positions-differing": len(differing),
    }
    undecided = unfinished or _lack(evidence.digests, compared)
    if violations:
        first = violations[0]["sentence"]
        at = counted(len(differing), "position")
        reason = f"The members' states differ at {at}: {first} {unfinished}".rstrip()
        return CheckResult(NAME, Verdict.INVALID, reason, figures, violations, undecided=undecided)
    if undecided:
        return CheckResult(NAME, Verdict.UNKNOWN, undecided, figures)
    everyone = frozenset[str]().union(*compared.values())
    reason = (
        f"{counted(len(everyone), 'member')} told equal digests at each of "
        f"{counted(len(compared), 'position')} that two of them told."
    )
    return CheckResult(NAME, Verdict.VALID, reason, figures)


def _nodes(told: _Told) -> frozenset[str]:
    return frozenset(node for answers in told.values() for node in answers)


def _difference(place: _Place, told: _Told) -> dict[str, Any]:
    """Describe the members that told different digests, those of the most members first."""
    groups = sorted(told.items(), key=lambda item: (-len(item[1]), min(item[1])))
    clauses = [
        f"{' and '.join(_when(node, answers[node]) for node in sorted(answers))} told {digest}"
        for digest, answers in groups
    ]
    return {
        "kind": _DIFFER,
        "scope": place[0],
        "position": place[1],
        "digests": {digest: sorted(answers) for digest, answers in groups},
        "sentence": f"At position {_at(place)} {', but '.join(clauses)}.",
    }


def _at(place: _Place) -> str:
    scope, position = place
    return f"{position} of {scope}" if scope else str(position)


def _when(node: str, answer: DigestAnswer) -> str:
    return f"{node} ({answer.time / _NS_PER_S:.3f} s into the run)"


def _lack(answers: Sequence[DigestAnswer], compared: Mapping[_Place, frozenset[str]]) -> str | None:
    """Return why equal digests prove nothing yet; None where they do."""
    if not answers:
        return "No member was asked for a digest."
    told = [answer for answer in answers if answer.told is not None]
    if not told:
        problem = next((answer.problem for answer in answers if answer.problem), None)
        return f"No member told a digest{_because(problem)}."
    final = {answer.node: answer for answer in answers if answer.final}
    if final:
        return _final_lack(final)
    alone = {answer.node for answer in told} - frozenset[str]().union(*compared.values())
    if alone:
        return f"Nobody else told a digest at a position of {', '.join(sorted(alone))}."
    return None


def _final_lack(final: Mapping[str, DigestAnswer]) -> str | None:
    """Return why members could not be compared at the end; None where they could."""
    silent = sorted(node for node, answer in final.items() if answer.told is None)
    if silent:
        problem = next((answer.problem for answer in final.values() if answer.problem), None)
        return f"At the end {', '.join(silent)} ran and told no digest{_because(problem)}."
    if len(final) == 1:
        return f"At the end only {next(iter(final))} ran, and had nobody to be compared with."
    stood = {node: _place_of(answer.told) for node, answer in final.items() if answer.told}
    if len(set(stood.values())) > 1:
        positions = ", ".join(f"{node} at {_at(stood[node])}" for node in sorted(stood))
        return f"At the end the members did not come to stand at one position: {positions}."
    return None


def _place_of(told: MemberDigest) -> _Place:
    return told.scope, told.position


def _because(problem: str | None) -> str:
    return f" ({problem})" if problem else ""
