"""Views at brokers: what goes back or is not as committed is red; mutants of the checker are not.

Each story is one thing that happened; a mutant, made by replacing one piece of the checker's
source, must tell something else of at least one of them.
"""

from types import ModuleType
from typing import Any, NamedTuple

import pytest

from splitbrain.checker import broker_views
from splitbrain.checker.evidence import Evidence
from splitbrain.checker.verdict import CheckResult, Verdict
from splitbrain.contracts.budget import Unlimited
from splitbrain.contracts.committed import CommittedLog
from splitbrain.history.records import PairedOperation
from tests.unit.checker.mutated import mutated
from tests.unit.checker.operations import log, operation, record

BACK, OTHER = "view-went-back", "view-not-as-committed"


def view(
    start: int, shown: int | None, offset: int, *, node: str = "n4", **fields: Any
) -> PairedOperation:
    end = fields.pop("end", start + 1)
    return operation("view", None, [shown, offset], start=start, end=end, node=node, **fields)


#: Topic ``a``: 3 partitions from offset 2 on, none from 5 on, 7 partitions from 8 on; ``b``: 4.
LOG = (
    record(0, 1, None, None),
    record(2, 1, "create", 3),
    record(4, 1, "create", 4, key="b"),
    record(5, 1, "delete", None),
    record(8, 2, "create", 7),
    record(9, 2, None, None),
)


class Story(NamedTuple):
    views: tuple[PairedOperation, ...]
    told: Verdict | tuple[str, ...]
    logs: tuple[CommittedLog, ...] = (log("n1", *LOG),)


STORIES = {
    "each state at its offset": Story(
        tuple(
            view(10 * place, shown, offset)
            for place, (shown, offset) in enumerate(
                [(None, 0), (None, 2), (3, 3), (3, 5), (None, 6), (None, 8), (7, 9), (7, 10)]
            )
        ),
        Verdict.VALID,
    ),
    "a delete that its node never knew to be committed": Story(
        (view(0, 3, 6),),
        Verdict.VALID,
        (
            CommittedLog(node="n1", start_offset=0, end_offset=5, records=LOG),
            log("n2", *LOG[:3], record(5, 2, None, None)),
        ),
    ),
    "the same offset twice": Story((view(0, 3, 4), view(2, 3, 4)), Verdict.VALID),
    "an earlier offset later": Story((view(0, None, 6), view(2, 3, 4)), (BACK,)),
    "not against the last but the furthest": Story(
        (view(0, 7, 9), view(2, None, 6), view(4, None, 7)), (BACK, BACK)
    ),
    "at the same time": Story((view(0, None, 6, end=5), view(5, 3, 4)), Verdict.VALID),
    "one that ended late does not count": Story(
        (view(0, 7, 9, end=20), view(2, 3, 4), view(6, 3, 5)), Verdict.VALID
    ),
    "each broker by itself": Story((view(0, 7, 9), view(2, 3, 4, node="n5")), Verdict.VALID),
    "of any topic": Story((view(0, 7, 9), view(2, 4, 8, key="b")), (BACK,)),
    "a number that was never committed": Story((view(0, 2, 4),), (OTHER,)),
    "a topic that is gone": Story((view(0, 3, 6),), (OTHER,)),
    "nothing where there is a topic": Story((view(0, None, 3),), (OTHER,)),
    "too early": Story((view(0, 3, 2),), (OTHER,)),
    "of another topic": Story((view(0, 4, 5),), (OTHER,)),
    "failed ones do not count": Story(
        (view(0, 9, 9, outcome="fail"), view(2, 3, 4)), Verdict.VALID
    ),
    "other operations do not count": Story(
        (operation("describe", None, 9, start=0, end=1, node="n4"), view(2, 3, 4)), Verdict.VALID
    ),
    "no view": Story((), Verdict.UNKNOWN),
    "no log": Story((view(0, 3, 4),), Verdict.UNKNOWN, ()),
    "beyond the logs": Story((view(0, 9, 11),), Verdict.UNKNOWN),
    "some beyond the logs": Story((view(0, 3, 4), view(2, 9, 11)), Verdict.VALID),
    "the longest log tells": Story(
        (view(0, 7, 9),), Verdict.VALID, (log("n1", *LOG[:3]), log("n2", *LOG))
    ),
    "before the beginning of the log": Story(
        (view(0, 9, 6),), Verdict.UNKNOWN, (log("n1", *LOG[4:], start=6),)
    ),
    "after a change in a log without beginning": Story(
        (view(0, 9, 9),), (OTHER,), (log("n1", *LOG[4:], start=6),)
    ),
    "one whole log is enough": Story(
        (view(0, 9, 2),), (OTHER,), (log("n1", *LOG[4:], start=6), log("n2", *LOG))
    ),
    "without an offset": Story((operation("view", start=0, end=1, node="n4"),), Verdict.UNKNOWN),
}


def judged(story: Story, module: ModuleType = broker_views) -> CheckResult:
    logs = {one.node: one for one in story.logs}
    return module.check(Evidence(operations=story.views, committed_logs=logs), Unlimited())


def told(result: CheckResult) -> Verdict | tuple[str, ...]:
    if result.verdict is Verdict.INVALID:
        return tuple(found["kind"] for found in result.violations)
    return result.verdict


@pytest.mark.parametrize("name", STORIES)
def test_a_story_is_told_as_it_was(name: str) -> None:
    result = judged(STORIES[name])
    assert told(result) == STORIES[name].told
    assert (result.reason == "No broker answered a view.") == (name == "no view")
    assert result.reason.endswith(".")


MUTANTS = {
    "nothing goes back": ("furthest[place - 1].offset <= view.offset", "True"),
    "the same offset is going back": (
        "furthest[place - 1].offset <= view.offset",
        "furthest[place - 1].offset < view.offset",
    ),
    "the last one counts": (
        "furthest.append(furthest[-1] if ahead else view)",
        "furthest.append(view)",
    ),
    "beginnings count": (
        "by_end = sorted(views, key=lambda view: end_of(view.operation))",
        "by_end = sorted(views, key=lambda view: view.operation.start)",
    ),
    "equal times are in order": (
        "bisect_left(ends, view.operation.start)",
        "bisect_left(ends, view.operation.start + 1)",
    ),
    "all brokers are one": ("by_node.setdefault(view.node, [])", 'by_node.setdefault("", [])'),
    "content is not looked at": ("if view.shown == committed:", "if True:"),
    "absence is always right": (
        "if view.shown == committed:",
        "if view.shown == committed or view.shown is None:",
    ),
    "deletes change nothing": ('elif record.f == "delete":', "elif False:"),
    "one record too many": (
        "return self._states[key][place - 1] if place else None",
        "return self._states.get(key, [None])[place - 1 if place else 0]",
    ),
    "what is beyond is known": ("if offset > self.end:", "if False:"),
    "what is before is known": ("return self.start == 0 or", "return True or"),
    "one short log is all": ("self.end = max(", "self.end = min("),
    "the latest beginning counts": ("self.start = min(", "self.start = max("),
    "failed ones count": (' or operation.type != "ok"', ""),
    "no logs are well": ("elif not covered:", "elif False:"),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_a_mutant_is_told_apart(name: str) -> None:
    mutant = mutated(broker_views, *MUTANTS[name])

    def tells_it(story: Story) -> bool:
        try:
            return told(judged(story, mutant)) == story.told
        except Exception:  # noqa: BLE001 - a mutant may fall over
            return False

    assert not all(map(tells_it, STORIES.values())), f"{name} told every story"


def test_the_sentence_names_broker_offsets_and_operations() -> None:
    found = judged(STORIES["an earlier offset later"]).violations[0]
    assert found["sentence"] == (
        "n4 showed its image of offset 6 (index 0) and later that of offset 4 (index 2)."
    )
    found = judged(STORIES["a topic that is gone"]).violations[0]
    assert found["sentence"] == (
        "n4 showed 3 as the partitions of key a at offset 6 (index 0), but the committed log has "
        "nothing there."
    )
