"""Members' digests: red where they differ at one place; never for a laggard or another scope.

Each story is what members told; a mutant, made by replacing one piece of the checker's source, must
tell something else of at least one of them.
"""

from types import ModuleType
from typing import NamedTuple

import pytest

from splitbrain.checker import member_digests
from splitbrain.checker.evidence import Evidence
from splitbrain.checker.fingerprints import fingerprint_of
from splitbrain.checker.verdict import CheckResult, Verdict
from splitbrain.contracts.budget import Unlimited
from splitbrain.contracts.member_digest import DigestAnswer, MemberDigest
from tests.unit.checker.mutated import mutated

S = 1_000_000_000


def told(
    node: str, at: int, position: int, digest: str, scope: str = "", *, final: bool = False
) -> DigestAnswer:
    return DigestAnswer(at * S, node, MemberDigest(position, digest, scope), final)


def silent(node: str, at: int, *, final: bool = False, problem: str | None = None) -> DigestAnswer:
    return DigestAnswer(at * S, node, None, final, problem)


def last(node: str, position: int, digest: str, scope: str = "") -> DigestAnswer:
    return told(node, 60, position, digest, scope, final=True)


class Story(NamedTuple):
    answers: tuple[DigestAnswer, ...]
    #: Verdict, or the positions at which digests differ.
    told: Verdict | tuple[int, ...]


ENDED = (last("n1", 9, "i"), last("n2", 9, "i"))
STORIES = {
    "all of one mind": Story((told("n1", 1, 5, "e"), told("n2", 1, 5, "e"), *ENDED), Verdict.VALID),
    "one diverged": Story((*ENDED, last("n3", 9, "x")), (9,)),
    "diverged, and then wiped and put right": Story(
        (told("n1", 1, 5, "e"), told("n3", 1, 5, "x"), *ENDED, last("n3", 9, "i")), (5,)
    ),
    "at several positions": Story(
        (*ENDED, told("n1", 1, 5, "e"), told("n2", 1, 5, "x"), told("n3", 1, 9, "x")), (9, 5)
    ),
    "asked at different times": Story((told("n1", 1, 5, "e"), told("n2", 9, 5, "x"), *ENDED), (5,)),
    "one member with two states at one position": Story(
        (told("n1", 1, 5, "e"), told("n1", 2, 5, "x"), *ENDED), (5,)
    ),
    "a laggard": Story(
        (told("n1", 1, 5, "e"), told("n2", 1, 3, "c"), told("n1", 2, 6, "f"), *ENDED),
        Verdict.VALID,
    ),
    "a laggard as the others were": Story(
        (told("n1", 1, 5, "e"), told("n2", 3, 5, "e"), *ENDED), Verdict.VALID
    ),
    "another scope": Story(
        (told("n1", 1, 5, "e", "a"), told("n2", 1, 5, "x", "b"), *ENDED), Verdict.VALID
    ),
    "within a scope": Story((told("n1", 1, 5, "e", "a"), told("n2", 1, 5, "x", "a"), *ENDED), (5,)),
    "one that died in between": Story((told("n3", 1, 2, "b"), *ENDED), Verdict.VALID),
    "one that died and had diverged": Story(
        (told("n3", 1, 2, "x"), told("n1", 1, 2, "b"), *ENDED), (2,)
    ),
    "one that was silent for a while": Story((silent("n2", 1), *ENDED), Verdict.VALID),
    "a run without an end": Story((told("n1", 1, 5, "e"), told("n2", 1, 5, "e")), Verdict.VALID),
    "nobody was asked": Story((), Verdict.UNKNOWN),
    "nobody answered": Story((silent("n1", 1, problem="KeyError: 7"),), Verdict.UNKNOWN),
    "never at one position": Story((told("n1", 1, 5, "e"), told("n2", 1, 6, "f")), Verdict.UNKNOWN),
    "never in one scope": Story(
        (told("n1", 1, 5, "e", "a"), told("n2", 1, 5, "e", "b")), Verdict.UNKNOWN
    ),
    "one member alone": Story((told("n1", 1, 5, "e"), told("n1", 2, 5, "e")), Verdict.UNKNOWN),
    "one of three never compared": Story(
        (told("n1", 1, 5, "e"), told("n2", 1, 5, "e"), told("n3", 1, 4, "d")), Verdict.UNKNOWN
    ),
    "behind at the end": Story((*ENDED, last("n3", 8, "h")), Verdict.UNKNOWN),
    "in another scope at the end": Story((*ENDED, last("n3", 9, "i", "b")), Verdict.UNKNOWN),
    "silent at the end": Story((*ENDED, silent("n3", 60, final=True)), Verdict.UNKNOWN),
    "alone at the end": Story(
        (told("n1", 1, 5, "e"), told("n2", 1, 5, "e"), last("n1", 9, "i")), Verdict.UNKNOWN
    ),
    "behind at the end and diverged before": Story(
        (told("n1", 1, 5, "e"), told("n3", 1, 5, "x"), *ENDED, last("n3", 8, "h")), (5,)
    ),
}


def judged(story: Story, module: ModuleType = member_digests) -> CheckResult:
    return module.check(Evidence(operations=(), digests=story.answers), Unlimited())


def found(result: CheckResult) -> Verdict | tuple[int, ...]:
    if result.verdict is Verdict.INVALID:
        return tuple(violation["position"] for violation in result.violations)
    return result.verdict


@pytest.mark.parametrize("name", STORIES)
def test_a_story_is_told_as_it_was(name: str) -> None:
    result = judged(STORIES[name])
    assert found(result) == STORIES[name].told
    assert result.reason.endswith(".")
    assert (fingerprint_of(result) is not None) == (result.verdict is Verdict.INVALID)


def test_the_sentence_names_members_position_digests_and_times() -> None:
    result = judged(
        Story(
            (told("n2", 3, 5, "e", "r1"), told("n1", 2, 5, "e", "r1"), told("n3", 4, 5, "x", "r1")),
            (),
        )
    )
    assert result.reason == (
        "The members' states differ at 1 position: At position 5 of r1 n1 (2.000 s into the run) "
        "and n2 (3.000 s into the run) told e, but n3 (4.000 s into the run) told x."
    )
    assert result.violations[0]["digests"] == {"e": ["n1", "n2"], "x": ["n3"]}


def test_what_is_lacking_is_said() -> None:
    assert "KeyError: 7" in judged(STORIES["nobody answered"]).reason
    assert "n1 at 9, n2 at 9, n3 at 8" in judged(STORIES["behind at the end"]).reason
    assert "n3 ran and told no digest" in judged(STORIES["silent at the end"]).reason
    assert "only n1 ran" in judged(STORIES["alone at the end"]).reason
    assert "position of n3" in judged(STORIES["one of three never compared"]).reason


class Ended:
    def exhausted(self) -> str | None:
        return "out of time"


def test_a_judgement_cut_short_is_unknown() -> None:
    result = member_digests.check(Evidence(operations=(), digests=ENDED), Ended())
    assert (result.verdict, result.reason) == (Verdict.UNKNOWN, "Not finished: out of time.")


_PLACE = "(answer.told.scope, answer.told.position), {}"
MUTANTS = {
    "scopes are not told apart": (_PLACE, "('', answer.told.position), {}"),
    "positions are not told apart": (_PLACE, "(answer.told.scope, 0), {}"),
    "two digests are none too many": ("if len(told) > 1]", "if len(told) > 2]"),
    "only the last answer of a place counts": (
        "told.setdefault(answer.told.digest, {})",
        "told.clear() or told.setdefault(answer.told.digest, {})",
    ),
    "one member makes a comparison": ("_nodes(told)) > 1}", "_nodes(told)) > 0}"),
    "silence at the end is agreement": ("if silent:", "if not silent and False:"),
    "places at the end may differ": ("set(stood.values())) > 1", "set(stood.values())) > 9"),
    "one at the end is enough": ("if len(final) == 1:", "if len(final) == 0:"),
    "the end does not count": ("        return _final_lack(final)\n", "        pass\n"),
    "one may be left uncompared": ("    if alone:", "    if len(alone) > 1:"),
    "no answer is agreement": ("    if not answers:", "    if not answers:\n        return None"),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_a_mutant_tells_a_story_otherwise(name: str) -> None:
    mutant = mutated(member_digests, *MUTANTS[name])
    assert any(found(judged(story, mutant)) != story.told for story in STORIES.values())
