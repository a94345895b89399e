"""Rules that name what is wrong with queues, counters and appended text; pure.

As in ``checker.anomalies.cell_rules``, each rule proves what it names.
"""

from collections.abc import Collection, Hashable, Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Final

from splitbrain.checker.anomalies.account import step_of
from splitbrain.checker.anomalies.cell_rules import Named, from_nowhere, shows_for_good
from splitbrain.checker.anomalies.cells import Fact
from splitbrain.checker.anomalies.names import (
    DUPLICATE,
    FORK,
    LOST_UPDATE,
    LOST_WRITE,
    PHANTOM_VALUE,
    REORDER,
    STALE_READ,
    STALE_TOKEN,
)
from splitbrain.checker.explanation import precedes
from splitbrain.checker.models.model import freeze, granted, text_of
from splitbrain.history.edn_values import size_of
from splitbrain.history.records import PairedOperation

_Operations = Sequence[PairedOperation]
#: Characters of the longest answer that is taken apart into what was appended.
_TEXT_MAX: Final = 100_000


class _Queue:
    """Elements of a queue or a stack, each with the operations that put it in and took it out."""

    def __init__(self, operations: _Operations, put: str) -> None:
        self.puts: dict[Hashable, list[PairedOperation]] = {}
        self.missed: dict[Hashable, list[PairedOperation]] = {}
        self.takes: dict[Hashable, list[PairedOperation]] = {}
        self.open_takes: list[PairedOperation] = []
        for o in operations:
            if o.f == put:
                refused = o.type == "fail" or (o.type == "ok" and not granted(o.result))
                kept = self.missed if refused else self.puts
                kept.setdefault(freeze(o.argument), []).append(o)
            elif o.type == "info":
                self.open_takes.append(o)
            elif o.type == "ok" and o.result is not None:
                self.takes.setdefault(freeze(o.result), []).append(o)


def name_of_queue(
    operations: _Operations, core: Collection[int], *, put: str = "enqueue", ordered: bool
) -> Named | None:
    """Return the name of what a queue's or a stack's operations show.

    ``put`` is the kind that puts an element in; ``ordered``: oldest out first.
    """
    queue = _Queue(operations, put)
    answers = [o for o in operations if o.index in core and o.f != put and o.type == "ok"]
    for answer in answers:
        named = _of_nothing(queue, answer) if answer.result is None else _of_one(queue, answer)
        if named is not None:
            return named
    if not ordered:
        return None
    taken = [answer for answer in answers if answer.result is not None]
    return next((named for answer in taken if (named := _overtaken(queue, answer))), None)


def _of_one(queue: _Queue, answer: PairedOperation) -> Named | None:
    element = freeze(answer.result)
    puts, takes = queue.puts.get(element, []), queue.takes[element]
    shown = f" with {text_of(element)}"
    named = from_nowhere(answer, shown, puts, queue.missed.get(element, ()))
    if named is not None or len(takes) <= len(puts):
        return named
    first, *_, last = sorted(takes, key=_ended)
    put = "once" if len(puts) == 1 else f"{len(puts):,} times"
    again = step_of(last, f"{shown} again, which was put in {put}")
    return Named(DUPLICATE, (step_of(first, shown), again))


def _of_nothing(queue: _Queue, answer: PairedOperation) -> Named | None:
    """Name an answer that found a queue empty while an element was certainly in it."""
    if any(not precedes(answer, take) for take in queue.open_takes):
        return None
    for element, puts in queue.puts.items():
        takes = queue.takes.get(element, [])
        if len(puts) > 1 or puts[0].type != "ok" or not precedes(puts[0], answer):
            continue
        if any(not precedes(answer, take) for take in takes):
            continue
        name = STALE_READ if takes or queue.open_takes else LOST_WRITE
        rest = " with nothing, although nobody had taken that out"
        return Named(name, (step_of(puts[0]), step_of(answer, rest)))
    return None


def _overtaken(queue: _Queue, answer: PairedOperation) -> Named | None:
    """Name an element that came out before one that was put in certainly before it."""
    puts = queue.puts.get(freeze(answer.result), [])
    if len(puts) != 1 or queue.open_takes:
        return None
    for element, older in queue.puts.items():
        takes = queue.takes.get(element, [])
        if len(older) > 1 or older[0].type != "ok" or not precedes(older[0], puts[0]):
            continue
        if len(takes) <= 1 and all(precedes(answer, take) for take in takes):
            rest = f" with {text_of(answer.result)}, which was put in after it"
            return Named(REORDER, (step_of(older[0]), step_of(answer, rest)))
    return None


def name_of_count(operations: _Operations, core: Collection[int]) -> Named | None:
    """Return the name of what a counter's answers show, where it is only counted up."""
    adds = [o for o in operations if o.f != "read" and o.type != "fail"]
    # Sums of fractions are not exact, and what is counted down may hide anything.
    if any(not isinstance(size := size_of(o.argument), int) or size < 0 for o in adds):
        return None
    answers = [o for o in operations if o.f != "add" and o.type == "ok"]
    inside = [answer for answer in answers if answer.index in core]
    for answer in inside:
        shown = size_of(answer.result or 0)
        own = 0 if answer.f == "read" else size_of(answer.argument)
        before = [o for o in adds if o.type == "ok" and precedes(o, answer)]
        possible = [o for o in adds if o is not answer and not precedes(answer, o)]
        if shown > own + sum(size_of(o.argument) for o in possible):
            rest = f" with {shown}, more than had been asked to add"
            return Named(PHANTOM_VALUE, (step_of(answer, rest),))
        least = own + sum(size_of(o.argument) for o in before)
        if shown < least and before:
            last = max(before, key=_ended)
            enough = [o for o in answers if size_of(o.result or 0) >= least]
            lacking = [o for o in answers if precedes(last, o)]
            lost = not enough and (own > 0 or shows_for_good(lacking))
            rest = f" with {shown}, although {least} had been added"
            return Named(
                LOST_UPDATE if lost else STALE_READ, (step_of(last), step_of(answer, rest))
            )
    return _counted_alike(inside)


def _counted_alike(answers: _Operations) -> Named | None:
    """Name two additions that were answered with one sum, though each added something."""
    seen: dict[Hashable, PairedOperation] = {}
    for answer in answers:
        if answer.f != "add-and-get" or size_of(answer.argument) == 0:
            continue
        first = seen.setdefault(freeze(answer.result), answer)
        if first is not answer:
            told = sorted((first, answer), key=_ended)
            shown = text_of(answer.result)
            again = step_of(told[1], f" with {shown} too")
            return Named(LOST_UPDATE, (step_of(told[0], f" with {shown}"), again))
    return None


class Texts:
    """Answers of an appended text, taken apart into the pieces that were put and appended."""

    def __init__(self, operations: _Operations) -> None:
        self.writes: dict[str, list[PairedOperation]] = {}
        for o in operations:
            if o.f != "get" and o.argument:
                self.writes.setdefault(o.argument, []).append(o)
        #: Whether there is nothing but appends.
        self.only_grows = all(o.f != "put" for o in operations)
        self.pieces = {
            o.index: pieces
            for o in operations
            if o.f == "get" and o.type == "ok"
            and (pieces := _pieces_of(o.result or "", self.writes)) is not None
        }  # fmt: skip

    def facts(self, o: PairedOperation, elements: Sequence[Hashable]) -> Iterator[Fact]:
        """Yield which pieces a text shows or gets; each is a cell that is there or not."""
        if o.f == "get":
            shown = self.pieces.get(o.index)
            known = () if shown is None else elements
            yield from (Fact("shows", piece, piece in (shown or ())) for piece in known)
        elif o.f == "put":
            yield from (Fact("sets", piece, piece == o.argument) for piece in elements)
        elif o.argument in elements:
            yield Fact("sets", o.argument, value=True)

    def elements(self, core: Iterable[PairedOperation]) -> list[Hashable]:
        """Return the pieces that the operations of a core speak of."""
        found: dict[Hashable, None] = {}
        for o in core:
            pieces = self.pieces.get(o.index, ()) if o.f == "get" else (o.argument,)
            found.update(dict.fromkeys(piece for piece in pieces if piece))
        return [*found]


def name_of_text(texts: Texts, operations: _Operations, core: Collection[int]) -> Named | None:
    """Return the name of what the answers of a text that only grows show of its order."""
    if not texts.only_grows:
        return None
    inside = [o for o in operations if o.index in core and o.index in texts.pieces]
    for answer in inside:
        parts = texts.pieces[answer.index]
        for piece in dict.fromkeys(parts):
            appends = texts.writes[piece]
            if parts.count(piece) > len(appends):
                rest = f" with {text_of(piece)} {parts.count(piece)} times"
                return Named(DUPLICATE, (step_of(appends[0]), step_of(answer, rest)))
        if (named := _reordered(answer, parts, texts.writes)) is not None:
            return named
    return _forked([(answer, texts.pieces[answer.index]) for answer in inside])


def _pieces_of(text: str, known: Iterable[str]) -> list[str] | None:
    """Return the pieces that a text is made of; None where there is no way or more than one."""
    if len(text) > _TEXT_MAX:
        return None
    by_letter: dict[str, list[str]] = {}
    for piece in known:
        by_letter.setdefault(piece[0], []).append(piece)
    found: list[str] = []
    place = 0
    while place < len(text):
        fitting = [p for p in by_letter.get(text[place], ()) if text.startswith(p, place)]
        if len(fitting) != 1:
            return None
        found.append(fitting[0])
        place += len(fitting[0])
    return found


def _reordered(
    answer: PairedOperation, parts: Sequence[str], pieces: dict[str, list[PairedOperation]]
) -> Named | None:
    for earlier, later in pairwise(parts):
        first, second = pieces[earlier], pieces[later]
        if len(first) == len(second) == 1 and precedes(second[0], first[0]):
            rest = f" with {text_of(later)} behind {text_of(earlier)}, which was appended later"
            return Named(REORDER, (step_of(second[0]), step_of(answer, rest)))
    return None


def _forked(answers: Sequence[tuple[PairedOperation, list[str]]]) -> Named | None:
    """Name two answers of which neither continues the other."""
    for place, (one, first) in enumerate(answers):
        for other, second in answers[place + 1 :]:
            length = min(len(first), len(second))
            if first[:length] != second[:length]:
                told = sorted((one, other), key=_ended)
                again = step_of(
                    told[1], f" with {text_of(told[1].result)}: neither continues the other"
                )
                return Named(FORK, (step_of(told[0], f" with {text_of(told[0].result)}"), again))
    return None


def name_of_tokens(operations: _Operations, core: Collection[int]) -> Named | None:
    """Return the name of a guarded write that was accepted with a token that was too low."""
    writes = [o for o in operations if o.f == "write" and o.type == "ok" and granted(o.result)]
    for write in writes:
        for earlier in writes:
            lower = size_of(write.argument[0]) < size_of(earlier.argument[0])
            if write.index in core and lower and precedes(earlier, write):
                rest = ", although its token is lower"
                return Named(STALE_TOKEN, (step_of(earlier), step_of(write, rest)))
    return None


def _ended(operation: PairedOperation) -> tuple[int, int]:
    return operation.end or 0, operation.index
