"""Mutants of the checker of share groups, each of which some case tells apart."""

from types import ModuleType

from splitbrain.checker.share_groups import check as checker
from splitbrain.checker.share_groups import holds, readings

#: Module, what stands in it, and what a mutant has instead.
MUTANTS: dict[str, tuple[ModuleType, str, str]] = {
    "lost records are no matter": (checker, "place in self._deliveries:", "True:"),
    "records that are not there are no matter": (
        checker,
        "if end_of(send) < whole.read.start:",
        "if False:",
    ),
    "records sent behind the read count": (
        checker,
        "if end_of(send) < whole.read.start:",
        "if True:",
    ),
    "records sent behind the end count": (checker, "or not is_awaited or", "or"),
    "equal times are in order": (
        checker,
        "end_of(send) < drained.start",
        "end_of(send) <= drained.start",
    ),
    "the first that saw the end counts": (
        checker,
        "if self._drained is None or operation.start > self._drained.start:",
        "if self._drained is None:",
    ),
    "nobody gives up": (checker, ">= DELIVERIES_MAX:", ">= 1000:"),
    "records are given up later": (checker, ">= DELIVERIES_MAX:", "> DELIVERIES_MAX:"),
    "records are given up earlier": (checker, ">= DELIVERIES_MAX:", ">= DELIVERIES_MAX - 1:"),
    "all acquires without an answer count": (checker, "(log, send.start)", "(log, 0)"),
    "lost acquires are no matter": (
        checker,
        "            self._unheard.add(operation)\n",
        "            pass\n",
    ),
    "leaders that did not answer are no matter": (
        checker,
        "self._unheard.add(operation, acquired.unanswered)",
        "pass",
    ),
    "failed acquires count": (
        checker,
        'elif operation.f == ACQUIRE and operation.type == "info":\n            self._unheard',
        "elif operation.f == ACQUIRE:\n            self._unheard._open += 1; self._unheard",
    ),
    "logs need not be read": (checker, "if unread:", "if False:"),
    "the end need not be seen": (
        checker,
        "if self._drained is None:\n            return",
        "if False:\n            return",
    ),
    "what nobody was given is valid": (
        checker,
        'return None if self._deliveries else "Nothing was acquired."',
        "return None",
    ),
    "released is settled": (checker, "if settlement.is_for_good else ()", ""),
    "lost settlements count": (
        checker,
        "after is not None:",
        "True:\n            after = after or 0",
    ),
    "settled meanwhile is settled before": (
        checker,
        "bisect_left(ends, acquired.operation.start)",
        "len(ends)",
    ),
    "settled at that moment is settled before": (
        checker,
        "bisect_left(ends, acquired.operation.start)",
        "bisect_left(ends, acquired.operation.start + 1)",
    ),
    "unknown epochs are no matter": (
        checker,
        "if before is None or not ended:",
        "before = before or 9\n            if not ended:",
    ),
    "epochs are no matter": (checker, "is_stale = before < settled.epoch", "is_stale = False"),
    "epochs must rise": (checker, "before < settled.epoch", "before <= settled.epoch"),
    "the last settlement counts": (checker, "min(one, other, key=_epoch)", "other"),
    "the first settlement counts": (checker, "min(one, other, key=_epoch)", "one"),
    "values are no matter": (
        checker,
        'if value_at(whole, offset) != value:\n                    there = f"and',
        'if False:\n                    there = f"and',
    ),
    "reads know what is behind them": (checker, "and offset < whole.end:", "and True:"),
    "other values are no matter": (checker, "elif value != first.value:", "elif False:"),
    "a record may be given twice": (
        checker,
        "if not operation.final and operation.index",
        "if False and operation.index",
    ),
    "a final acquire asks once": (
        checker,
        "if not operation.final and operation.index",
        "if operation.index",
    ),
    "one holds it alone": (holds, "if is_other and end_of", "if end_of"),
    "locks last": (
        holds,
        "min(first.operation.start + first.lock_ns, session.until)",
        "session.until",
    ),
    "locks last from the answer on": (
        holds,
        "first.operation.start + first.lock_ns",
        "end_of(first.operation) + first.lock_ns",
    ),
    "sessions last": (
        holds,
        "min(first.operation.start + first.lock_ns, session.until)",
        "first.operation.start + first.lock_ns",
    ),
    "the second only begins in it": (
        holds,
        "end_of(second.operation) < hold.until",
        "second.operation.start < hold.until",
    ),
    "the second ends with it": (
        holds,
        "end_of(second.operation) < hold.until",
        "end_of(second.operation) <= hold.until",
    ),
    "those that began together are in order": (
        holds,
        "end_of(by_end[-1].operation) < second",
        "by_end[-1].operation.start < second",
    ),
    "those that touch are in order": (
        holds,
        "end_of(by_end[-1].operation) < second",
        "end_of(by_end[-1].operation) <= second",
    ),
    "the last holder counts alone": (
        holds,
        "_longest([*longest.get(session.epoch, ()), hold])",
        "[hold]",
    ),
    "the first holder counts alone": (
        holds,
        "_longest([*longest.get(session.epoch, ()), hold])",
        "longest.get(session.epoch, [hold])",
    ),
    "one holder counts": (holds, "return [first, *", "return [first] or [*"),
    "all epochs are one": (
        holds,
        "longest.get(epoch, ()) if",
        "next(iter(longest.values()), ()) if",
    ),
    "a final one holds": (
        holds,
        "if answer is not None and not operation.final:",
        "if answer is not None:",
    ),
    "settling is no end": (holds, "(ACQUIRE, SETTLE, LEAVE)", "(ACQUIRE, LEAVE)"),
    "leaving is no end": (holds, "(ACQUIRE, SETTLE, LEAVE)", "(ACQUIRE, SETTLE)"),
    "failing is no end": (holds, "(ACQUIRE, SETTLE, LEAVE)", "(SETTLE, LEAVE)"),
    "being lost is no end": (holds, ' or operation.type == "info"', ""),
    "any send is an end": (holds, "if operation.f in _OF_MEMBERS or", "if True or"),
    "whoever did not answer did": (
        holds,
        "if epoch is None or log in answer.unanswered:",
        "if epoch is None:",
    ),
    "members are no matter": (
        holds,
        "(session.member, session.epoch) != (answer.member, epoch)",
        "session.epoch != epoch",
    ),
    "leaders are no matter": (
        holds,
        "(session.member, session.epoch) != (answer.member, epoch)",
        "session.member != answer.member",
    ),
    "settling tells nothing": (holds, "session.until = settlement.operation.start", "pass"),
    "unclear settling tells": (holds, "if is_same and log not in", "if is_same or log in"),
    "settling tells as any member": (
        holds,
        "is_same = (session.member, session.epoch) ==",
        "is_same = (settlement.member, session.epoch) ==",
    ),
    "settling tells in any epoch": (holds, "one_epoch(settlement, log))", "session.epoch)"),
    "asking for more tells nothing": (
        holds,
        "        session.until = answer.operation.start\n",
        "",
    ),
    "the epoch before is the leader's": (
        readings,
        "return before if before == after else None",
        "return before",
    ),
    "a final one asks once": (readings, "DELIVERIES_MAX if operation.final else 1", "1"),
    "acquires count once they ended": (
        readings,
        "- bisect_left(ends, since)",
        "- bisect_left(ends, since + 1)",
    ),
    "all logs are one": (
        readings,
        "self._ends.get(log, [])",
        "sorted(sum(self._ends.values(), []))",
    ),
    "rejected is not settled": (readings, "in (ACCEPT, REJECT),", "== ACCEPT,"),
    "ends are in order": (readings, "            ends.sort()", "            pass"),
}
