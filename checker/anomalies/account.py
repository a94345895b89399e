"""Account of a violation: its name and who did what in two or three sentences; pure.

A *step* is one answer. The caller says whose it is: a run knows nodes, their roles and
faults, a bare history has processes alone.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Literal, cast

import msgspec

from splitbrain.checker.allowing import count_of
from splitbrain.checker.anomalies.names import name_of, rank_of
from splitbrain.checker.models.model import is_list_of, text_of
from splitbrain.checker.verdict import CheckResult, Verdict
from splitbrain.contracts.words import counted
from splitbrain.history.records import PairedOperation

_NS_PER_S: Final = 1_000_000_000
_NS_PER_MS: Final = 1_000_000
#: Past tense of what was done to the request of a step, which is its participle too.
Verb = Literal["acknowledged", "answered", "refused", "failed"]


class Step(msgspec.Struct, frozen=True):
    """One answer of an account; JSON-ready."""

    #: Index of the operation in the history.
    index: int
    process: int
    node: str | None
    #: Moment of the answer, ns.
    time: int
    verb: Verb
    #: Request as a noun with its object: ``write 4 to r0``, ``a read of r0``.
    request: str
    #: Continuation of the sentence, with its comma or blank.
    rest: str = ""


#: Returns the subject of a step's sentence; None: tell it of its process.
Subject = Callable[[Step], str | None]


def step_of(operation: PairedOperation, rest: str = "") -> Step:
    """Return the step of one completed operation."""
    verb: Verb = "acknowledged"
    if operation.type == "fail":
        verb = "failed"
        rest = rest or (f" ({operation.error})" if operation.error else "")
    elif is_refusal(operation):
        verb = "refused"
    elif operation.f in _ASKS:
        verb = "answered"
    time = operation.start if operation.end is None else operation.end
    return Step(
        index=operation.index,
        process=operation.process,
        node=operation.node,
        time=time,
        verb=verb,
        request=request_of(operation),
        rest=rest,
    )


_ASKS: Final = frozenset(
    {
        *("read", "get", "contains", "describe", "add-and-get", "txn"),
        *("dequeue", "pop", "delete-min"),
    }
)


def asks(operation: PairedOperation) -> bool:
    """Return whether an operation's answer holds more than that it was done."""
    return operation.f in _ASKS


#: Prepositions between a request and its key.
_PREPOSITIONS: Final = {
    "write": "to",
    "put": "to",
    "append": "to",
    "add": "to",
    "enqueue": "to",
    "push": "to",
    "insert": "to",
    "remove": "from",
}


def is_refusal(operation: PairedOperation) -> bool:
    """Return whether an answer says that nothing was done."""
    if operation.type != "ok" or operation.f in _ASKS:
        return False
    result = operation.result
    is_list = isinstance(result, (list, tuple))
    parts = cast("Sequence[object]", result) if is_list else ()
    if operation.f == "create":
        return len(parts) == 2 and parts[1] is False
    # A written value may be a list too; a guarded write has a token beside its value.
    is_guarded = operation.f == "write" and is_list_of(operation.argument, 2)
    if len(parts) == 3 and (is_guarded or operation.f in ("cas", "acquire", "release")):
        return parts[2] is False or (operation.f == "cas" and not parts[2])
    # The answer to a write may repeat its value, which may be false.
    return result is False and operation.argument is not False


def request_of(operation: PairedOperation) -> str:
    """Return a request as a noun with its key: ``compare-and-set 1 to 3 of r0``."""
    f, argument, key = operation.f, operation.argument, operation.key
    noun = f"{f} {text_of(argument)}"
    if f == "cas" and is_list_of(argument, 2):
        expected, new = (text_of(value) for value in argument)
        noun = f"compare-and-set {expected} to {new}"
    elif f == "txn":
        noun = "a transaction"
    elif f in ("read", "get") or (argument is None and f not in ("write", "put")):
        noun = f"{'an' if f[0] in 'aeiou' else 'a'} {f}"
    elif f in ("acquire", "release"):
        noun = f"{'an' if f[0] in 'aeiou' else 'a'} {f} by {text_of(argument)}"
    elif f in _ASKS:
        noun = f"{f} {text_of(argument)}"
    if key is None:
        return noun
    # A short key, or a number, would be taken for a value.
    named = key if len(key) > 1 and key[0].isalpha() else f"key {key}"
    return f"{noun} {_PREPOSITIONS.get(f, 'of')} {named}"


def tell(name: str, steps: Sequence[Step], subject: Subject, *, timed: bool, more: str = "") -> str:
    """Return the account: name, a sentence for each step, and ``more``.

    ``timed``: the history has times. The first sentence has a moment, the others distances.
    """
    sentences = [f"{_capital(name)}."]
    before: int | None = None
    for step in steps:
        when = ""
        if before is not None:
            when = f"{gap_text(step.time - before)} later " if timed else "later "
        who = subject(step)
        sentence = f"{when}{_deed(step, who, is_first=before is None, timed=timed)}."
        # The name of a node keeps its letters.
        is_named_first = before is None and who is not None and step.verb != "failed"
        sentences.append(sentence if is_named_first else _capital(sentence))
        before = step.time
    return " ".join([*sentences, more]).rstrip()


def _capital(sentence: str) -> str:
    return sentence[0].upper() + sentence[1:]


def _deed(step: Step, subject: str | None, *, is_first: bool, timed: bool) -> str:
    at = f" at {step.time / _NS_PER_S:.3f} s" if timed and is_first else ""
    if step.verb == "failed":
        by = f" by process {step.process}" if subject is None else f" at {subject}"
        return f"{step.request}{by} certainly failed{step.rest}{at}"
    if subject is None:
        return f"{step.request} by process {step.process} was {step.verb}{at}{step.rest}"
    return f"{subject} {step.verb} {step.request}{at}{step.rest}"


def gap_text(gap_ns: int) -> str:
    """Return a distance in time: ``1.3 s``, ``29 ms``, ``0.4 ms``."""
    if gap_ns >= _NS_PER_S:
        return f"{gap_ns / _NS_PER_S:,.1f} s"
    if gap_ns >= _NS_PER_MS:
        return f"{gap_ns / _NS_PER_MS:,.0f} ms"
    return f"{gap_ns / _NS_PER_MS:.2g} ms" if gap_ns > 0 else "0 ms"


def steps_in(violation: Mapping[str, Any]) -> list[Step]:
    """Return the steps that a violation holds; none in results of earlier versions."""
    try:
        return msgspec.convert(violation.get("steps", []), list[Step])
    except msgspec.ValidationError:
        return []


def account_of(result: CheckResult) -> str | None:
    """Return the account of an invalid result's first violation, and how many keys are affected.

    None where it has none: it could not be named, or an earlier version judged.
    """
    if result.verdict is not Verdict.INVALID or not result.violations:
        return None
    first = result.violations[0]
    account = first.get("account")
    if not isinstance(account, str):
        return None
    count = count_of(result, str(first.get("kind")))
    if count > 1:
        of_keys = first.get("kind") == "not-linearizable" and first.get("key") is not None
        account += (
            f" {counted(count, 'key')} are affected."
            if of_keys
            else (f" There are {count:,} of this kind.")
        )
    return account


def rank_of_result(result: CheckResult) -> int:
    """Return the place of a result's first violation among the names, the most telling first."""
    return (
        rank_of(name_of(result.checker, result.violations[0])) if result.violations else rank_of("")
    )


def headline_of(result: CheckResult) -> str:
    """Return the sentences on one result: its account, else the reason behind the name."""
    account = account_of(result)
    if account is not None or result.verdict is not Verdict.INVALID or not result.violations:
        return account or result.reason
    return with_name_before(result.checker, result.violations[0], result.reason)


def with_name_before(checker: str, violation: Mapping[str, Any], text: str) -> str:
    """Return a text with the violation's name as its first sentence; as it is where it has none."""
    name = name_of(checker, violation)
    return text if name == violation.get("kind") else f"{_capital(name)}. {text}"
