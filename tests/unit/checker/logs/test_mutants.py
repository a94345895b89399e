"""Each mutant of a rule is told apart, by a case of an anomaly."""

import pytest

from splitbrain.checker import logs
from splitbrain.checker.logs.check import check as right
from splitbrain.contracts.budget import Unlimited
from tests.unit.checker.logs.cases import CASES
from tests.unit.checker.mutated_package import Check, mutated

#: Module, text of its source, and replacement.
MUTANTS = {
    "what was passed over is not asked for": (
        "check",
        "for each in log.passes:",
        "for each in ():",
    ),
    "an end is not asked": (
        "check",
        "for end in log.ends:\n            for _",
        "for end in ():\n            for _",
    ),
    "an end counts whatever was acknowledged": (
        "check",
        "if self._was_there(send, end.operation):",
        "if True:",
    ),
    "equal times are an order": (
        "check",
        "teller.end < reader.start for teller",
        "teller.end <= reader.start + 1 for teller",
    ),
    "without an offset nothing is lost": (
        "check",
        "if any(self._was_there(send, end.operation) for end in whole):",
        "if False:",
    ),
    "open sends are lost": (
        "check",
        "if not send.is_acknowledged:\n                continue",
        "pass",
    ),
    "nothing vanishes": (
        "check",
        "if not send.sightings:\n            self",
        "if True:\n            self",
    ),
    "what others read later has vanished": (
        "check",
        "SKIPPED if later else VANISHED",
        "VANISHED",
    ),
    "no transaction is torn": ("check", "if reads:\n", "if False:\n"),
    "a transaction is committed at once": (
        "check",
        "if end.operation.start > committed]",
        "]",
    ),
    "any value may stand at an offset": (
        "check",
        "if known is not record and known.value != value:",
        "if False:",
    ),
    "a value may stand twice": ("check", "if len(places) > 1:", "if False:"),
    "two readers are a duplicate": ("check", "if len(places) > 1:", "if len(send.sightings) > 1:"),
    "nobody is a stranger": (
        "check",
        "for stranger in log.strangers:\n            self._note",
        "for stranger in ():\n            self._note",
    ),
    "a failed send may be read": ("readings", 'self.operation.type == "fail"', "False"),
    "what was given up may be read": ("readings", " or self.operation.f == ABORT", ""),
    "what was given up is acknowledged": ("readings", " and self.operation.f != ABORT", ""),
    "what was given up has a place": ("parts", "is_ok and operation.f != ABORT", "is_ok"),
    "no transaction hangs": ("check", "in log.stopped:", "in ():"),
    "a transaction hangs in any read": ("readings", "if beyond is None:", "if True:"),
    "reads bound no commits": ("check", "self._commits.bound()", "pass"),
    "polls bound no commits": (
        "check",
        "        else:\n            self._commits.note_read",
        "        elif sender.f == reader.f == TXN:\n            self._commits.note_read",
    ),
    "an open send may not be read": (
        "readings",
        'self.operation.type == "fail"',
        'self.operation.type != "ok"',
    ),
    "own records may be read": ("check", "if sender.f in (TXN, ABORT):\n", "if False:\n"),
    "transactions are plain senders": ("check", "sender.f != TXN and not send", "not send"),
    "the future may be read": ("check", "end < sender.start", "False"),
    "what begins as a read ends is the future": (
        "check",
        "end < sender.start",
        "end <= sender.start",
    ),
    "transactions may read each other": ("commits", "if len(found) > 1:", "if False:"),
    "time sets no bounds to commits": ("commits", "own.end < start:", "False:"),
    "a commit waits for no other": (
        "commits",
        "max([(own.start, reader), *sources])",
        "(own.start, reader)",
    ),
    "equal times bound commits": ("commits", "own.end < start:", "own.end <= start:"),
    "ends may go back": ("check", "judge(END_BACK,", "(END_BACK,"),
    "sends may go back": ("check", "judge(SENT_BACK,", "(SENT_BACK,"),
    "what overlaps is in order": ("check", "[places] < starts", "[places] < starts - 1"),
    "what overlaps must be in order": ("check", "[places] < starts", "[places] <= starts"),
    "polls may go back": ("readings", "if offset < place:", "if False:"),
    "positions may go back": ("readings", "polled.position < place:", "False:"),
    "an offset may be read again": ("readings", "place = offset + 1", "place = offset"),
    "an assignment starts nowhere": ("readings", "start if is_known else None", "None"),
    "an assignment changes nothing": ("readings", "consumer.places = {key:", "_ = {key:"),
    "groups leave consumers where they are": (
        "readings",
        "consumer.is_subscribed = operation.f == SUBSCRIBE",
        "consumer.is_subscribed = False",
    ),
    "no end is told": ("readings", "if operation.final and", "if False and"),
    "every position is the end": ("readings", "if operation.final and", "if"),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_a_mutant_is_told_apart(name: str) -> None:
    assert not agrees(mutated(logs, *MUTANTS[name]))


def test_without_a_mutant_everything_agrees() -> None:
    assert agrees(mutated(logs, "check", "def check(", "def check("))


def agrees(check: Check) -> bool:
    """Whether a checker finds in each case its kind alone, and in its neighbour nothing."""
    try:
        return all(
            {found["kind"] for found in check(shown, Unlimited()).violations}
            == {name.partition(",")[0]}
            and check(nearly, Unlimited()).verdict is right(nearly, Unlimited()).verdict
            for name, (shown, nearly) in CASES.items()
        )
    except (ArithmeticError, AssertionError, LookupError, TypeError, ValueError):
        return False
