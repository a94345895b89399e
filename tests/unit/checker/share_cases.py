"""Small histories of share groups, their kinds of violations and their verdicts."""

from splitbrain.checker.verdict import Verdict
from tests.unit.checker.share_histories import LAST, Epochs, Written

Case = tuple[Written, set[str], Verdict]

A = {0: "a"}
AB = {0: "a", 1: "b"}


def valid(written: Written) -> Case:
    return written, set(), Verdict.VALID


def unknown(written: Written) -> Case:
    return written, set(), Verdict.UNKNOWN


def invalid(written: Written, *kinds: str) -> Case:
    return written, set(kinds), Verdict.INVALID


def told(*pair: int | None) -> Epochs:
    """Epochs of log 0's leader."""
    return {"0": pair}


def sent_after(number: int, type_: str = "ok", final: bool = False) -> Written:
    """A history of so many acquires that nobody was told of, and a record sent meanwhile."""
    written = Written().send("0", 1, "b")
    for process in range(number):
        unanswered = ("0",) if type_ == "ok" else ()
        written.acquire(process, {}, unanswered=unanswered, type_=type_, final=final)
    return written


def unheard(number: int, type_: str = "ok", final: bool = False) -> Written:
    return sent_after(number, type_, final).ended(AB, last={"0": A})


def taking_turns() -> Written:
    """Ten acquires that end after a record is sent, and ten later ones that end before."""
    written = Written()
    for process in range(20):
        written.acquire(process, {}, unanswered=["0"], took=500 if process < 10 else 5)
    return written.send("0", 1, "b").until(1000).ended(AB, last={"0": A})


def ten_with_one(ends: int) -> Case:
    """Nine acquires that may have been given a record, and one that ended then, at 20 ms sent."""
    written = Written().acquire(50, {}, unanswered=["0"], took=ends).until(20).send("0", 1, "b")
    for process in range(9):
        written.acquire(process, {}, unanswered=["0"])
    written.ended(AB, last={"0": A})
    return valid(written) if ends >= 20 else invalid(written, "lost-record")


LOST: dict[str, Case] = {
    "all are delivered": valid(
        Written().send("0", 0, "a").acquire(1, {"0": A}).settle(1, {"0": [0]}).ended(A)
    ),
    "the final acquire is delivered it": valid(Written().send("0", 0, "a").ended(A, last={"0": A})),
    "delivered to nobody": invalid(
        Written().send("0", 1, "b").ended(AB, last={"0": A}), "lost-record"
    ),
    "nobody saw the end": unknown(
        Written()
        .send("0", 1, "b")
        .acquire(LAST, {"0": A}, final=True)
        .shown("0", AB)
        .shown("1", {})
    ),
    "an acquire on the way saw no end": unknown(
        Written().send("0", 1, "b").acquire(1, {"0": A}).shown("0", AB)
    ),
    "sent while the end is seen": valid(
        Written().drained({"0": A}).until(14).send("0", 1, "b").shown("0", AB)
    ),
    "acknowledged as the end is looked for": valid(
        Written().send("0", 1, "b", took=20).ended(AB, last={"0": A})
    ),
    "the end is looked for twice": invalid(
        Written().drained({"0": A}).send("0", 1, "b").drained().shown("0", AB),
        "lost-record",
    ),
    "not acknowledged": valid(Written().send("0", 1, "b", "info").ended(AB, last={"0": A})),
    "nobody told the offset": valid(Written().send("0", None, "b").ended(AB, last={"0": A})),
    "given up, perhaps": valid(unheard(10)),
    "not given up yet": invalid(unheard(9), "lost-record"),
    "given up, perhaps, by those that never came back": valid(unheard(10, "info")),
    "not given up yet by those that never came back": invalid(unheard(9, "info"), "lost-record"),
    "certainly given nothing": invalid(unheard(20, "fail"), "lost-record"),
    "a final acquire that was lost accepts": valid(unheard(1, "info", final=True)),
    "a final acquire asks often": valid(unheard(1, final=True)),
    "given up, perhaps, in another log": invalid(
        sent_after(9).acquire(9, {}, unanswered=["1"]).ended(AB, last={"0": A}), "lost-record"
    ),
    "given up, perhaps, by those that took longer": valid(taking_turns()),
    "an acquire that ended before": invalid(
        Written()
        .acquire(20, {}, unanswered=["0"], took=9)
        .send("0", 1, "b")
        .until(30)
        .acquire(21, {}, unanswered=["0"])
        .ended(AB, last={"0": A}),
        "lost-record",
    ),
    "the log lacks it": invalid(Written().send("0", 1, "b").ended(A, last={"0": A}), "lost-record"),
    "the log has another": invalid(
        Written().send("0", 0, "b").ended(A, last={"0": A}), "lost-record"
    ),
    "sent while the log is read": valid(
        Written().ended(A, last={"0": A}).until(24).send("0", 1, "b")
    ),
    "the log is not read": unknown(Written().send("0", 1, "b").drained({"0": A}).shown("1", {})),
    "the tenth ended just before": ten_with_one(19),
    "the tenth ended at that moment": ten_with_one(20),
    "nothing is there": unknown(Written().ended({})),
}


def again(how: str = "accept", *, before: Epochs = None, after: Epochs = None) -> Written:
    """A history in which a record is settled, and delivered once more."""
    written = Written().acquire(1, {"0": A})
    written.settle(1, {"0": [0]}, how, epochs=after or told(1, 1))
    return written.acquire(2, {"0": A}, epochs=before or told(1, 1)).ended(A)


def again_though(settle: Written) -> Written:
    return settle.acquire(2, {"0": A}).ended(A)


REDELIVERED: dict[str, Case] = {
    "accepted, and again": invalid(again(), "redelivered"),
    "rejected, and again": invalid(again("reject"), "redelivered"),
    "released, and again": valid(again("release")),
    "again by a later leader": invalid(again(before=told(2, 2)), "redelivered"),
    "again by an earlier leader": invalid(again(after=told(1, 2)), "stale-delivery"),
    "again by an earlier leader that is replaced": invalid(
        again(after=told(2, 2), before=told(1, 2)), "stale-delivery"
    ),
    "again, and it is known before alone": invalid(again(before=told(1, None)), "redelivered"),
    "again, and nobody knows before": valid(again(before=told(None, 1))),
    "accepted, and nobody knows after": valid(again(after=told(1, None))),
    "accepted, and nobody knows of the log": valid(again(after={"1": (1, 1), "0": None})),
    "again, and nobody knows anything": valid(
        again_though(Written().acquire(1, {"0": A}).settle(1, {"0": [0]}, epochs=None))
    ),
    "refused, and again": valid(again_though(Written().acquire(1, {"0": A}).settle(1, {}))),
    "perhaps accepted, and again": valid(
        again_though(Written().acquire(1, {"0": A}).settle(1, {}, unclear={"0": [0]}))
    ),
    "another is accepted": valid(
        Written().acquire(1, {"0": AB}).settle(1, {"0": [1]}).acquire(2, {"0": A}).ended(AB)
    ),
    "one of another log is accepted": valid(
        again_though(Written().acquire(1, {"0": A}).settle(1, {"1": [0]}))
    ),
    "nobody heard of accepting it": valid(
        again_though(Written().acquire(1, {"0": A}).settle(1, {"0": [0]}, type_="info"))
    ),
    "accepting it failed": valid(
        again_though(Written().acquire(1, {"0": A}).settle(1, {"0": [0]}, type_="fail"))
    ),
    "again while it is accepted": valid(
        again_though(Written().acquire(1, {"0": A}).settle(1, {"0": [0]}, took=11))
    ),
    "again as it is accepted": valid(
        again_though(Written().acquire(1, {"0": A}).settle(1, {"0": [0]}, took=10))
    ),
    "again at the end": invalid(
        Written().acquire(1, {"0": A}).settle(1, {"0": [0]}).ended(A, last={"0": A}), "redelivered"
    ),
    "a final acquire does not tell that it accepts": valid(
        Written().acquire(LAST, {"0": A}, final=True).ended(A, last={"0": A})
    ),
    "accepted twice, in a later epoch, too": invalid(
        Written()
        .acquire(1, {"0": A})
        .settle(1, {"0": [0]})
        .settle(1, {"0": [0]}, epochs=told(3, 3))
        .acquire(2, {"0": A}, epochs=told(2, 2))
        .ended(A),
        "redelivered",
    ),
    "accepted twice, in an earlier epoch at last": invalid(
        Written()
        .acquire(1, {"0": A})
        .settle(1, {"0": [0]}, epochs=told(3, 3))
        .settle(1, {"0": [0]})
        .acquire(2, {"0": A}, epochs=told(2, 2))
        .ended(A),
        "redelivered",
    ),
    "accepted twice, in an earlier epoch later": invalid(
        Written()
        .acquire(1, {"0": A})
        .settle(1, {"0": [0]}, epochs=told(3, 3), took=15)
        .settle(1, {"0": [0]}, took=25)
        .until(30)
        .acquire(2, {"0": A}, epochs=told(2, 2))
        .until(60)
        .ended(A),
        "stale-delivery",
    ),
}


def held(then: Written, second: Epochs = None) -> Written:
    """A history in which a second member is given the record; the first one's acts follow."""
    return then.acquire(2, {"0": A}, epochs=second or told(1, 1))


def holder(epochs: Epochs = None, lock: int = 1000, took: int = 5) -> Written:
    return Written().acquire(1, {"0": A}, epochs=epochs or told(1, 1), lock=lock, took=took)


def goes_on(written: Written) -> Written:
    """The first member asks for more, and is answered as before."""
    return written.acquire(1, {}, epochs=told(1, 1)).ended(A)


def settles(written: Written) -> Written:
    return written.settle(1, {}).ended(A)


def both(took: int, lock: int, other: int, third: int = 3) -> Written:
    """Two are given a record at the same time, and then a third; the first two ask for more."""
    written = holder(lock=lock, took=took).acquire(2, {"0": A}, lock=other).until(30)
    written.acquire(third, {"0": A}).acquire(2, {}).acquire(1, {})
    return written.until(60).ended(A)


HELD: dict[str, Case] = {
    "two hold it, and the first asks for more": invalid(goes_on(held(holder())), "two-holders"),
    "two hold it, and the first is refused": invalid(settles(held(holder())), "two-holders"),
    "the first asked for more before, too": invalid(
        goes_on(held(holder().acquire(1, {}))), "two-holders"
    ),
    "another asked for more meanwhile": invalid(
        goes_on(held(holder().acquire(3, {}, epochs=told(2, 2)))), "two-holders"
    ),
    "another, which has held it for longer, is first": invalid(
        holder(lock=2000)
        .until(100)
        .acquire(3, {"0": A}, lock=500)
        .acquire(1, {"0": A}, lock=500)
        .acquire(3, {})
        .acquire(1, {})
        .ended(A),
        "two-holders",
    ),
    "the one that held it first holds it longer": invalid(both(12, 2000, 12), "two-holders"),
    "the one that held it last holds it longer": invalid(both(20, 2000, 12), "two-holders"),
    "it comes back to the one that holds it longer": invalid(
        both(20, 2000, 500, third=1), "two-holders"
    ),
    "two hold it at the end": invalid(
        goes_on(holder().acquire(LAST, {"0": A}, epochs=told(1, 1), final=True)), "two-holders"
    ),
    "nobody hears of the first again": valid(held(holder()).ended(A)),
    "the first was not answered again": valid(
        held(holder()).acquire(1, {}, unanswered=["0"], epochs=told(1, 1)).ended(A)
    ),
    "the first was never answered again": valid(
        held(holder()).acquire(1, {}, type_="info").ended(A)
    ),
    "the first failed then": valid(held(holder()).acquire(1, {}, type_="fail").ended(A)),
    "the first does not know the epoch then": valid(
        held(holder()).acquire(1, {}, epochs=told(1, None)).ended(A)
    ),
    "the first knows of no epoch then": valid(held(holder()).acquire(1, {}, epochs=None).ended(A)),
    "the first is another member then": valid(
        held(holder()).acquire(1, {}, member="other").ended(A)
    ),
    "another leader answers the first then": valid(
        held(holder()).acquire(1, {}, epochs=told(2, 2)).ended(A)
    ),
    "the first settles, and nobody knows": valid(
        held(holder()).settle(1, {}, unclear={"0": [0]}).ended(A)
    ),
    "the first settles with another leader": valid(
        held(holder()).settle(1, {}, epochs=told(2, 2)).ended(A)
    ),
    "the first settles as another member": valid(
        held(holder()).settle(1, {}, member="other").ended(A)
    ),
    "the first settles in vain": valid(held(holder()).settle(1, {}, type_="fail").ended(A)),
    "the first leaves": valid(held(holder()).leave(1).ended(A)),
    "the first settled before": valid(goes_on(held(holder().settle(1, {})))),
    "the first left before": valid(goes_on(held(holder().leave(1)))),
    "leaving, the first was lost before": valid(goes_on(held(holder().leave(1, "info")))),
    "a send of the first was lost before": valid(
        goes_on(held(holder().add("send", [["send", "0", "c"]], type_="info", process=1)))
    ),
    "a send of the first was answered before": invalid(
        goes_on(held(holder().add("send", [["send", "0", "c"]], type_="fail", process=1))),
        "two-holders",
    ),
    "the first had failed before": valid(goes_on(held(holder().acquire(1, {}, type_="fail")))),
    "the first was not answered before": valid(
        goes_on(held(holder().acquire(1, {}, unanswered=["0"])))
    ),
    "another leader answered the first before": valid(
        goes_on(held(holder().acquire(1, {}, epochs=told(2, 2))))
    ),
    "the first settles meanwhile": valid(
        holder().acquire(2, {"0": A}, took=20).settle(1, {}).acquire(1, {}).until(60).ended(A)
    ),
    "the lock is over": valid(goes_on(held(holder().until(1000)))),
    "the lock may end meanwhile": valid(goes_on(held(holder().until(995)))),
    "the lock is nearly over": invalid(goes_on(held(holder().until(994))), "two-holders"),
    "the second begins earlier": valid(goes_on(held(holder(took=11)))),
    "the second begins as the first ends": valid(goes_on(held(holder(took=10)))),
    "the leader of the first may be another": valid(goes_on(held(holder(told(1, 2))))),
    "the leader of the first is not known": valid(goes_on(held(holder(told(1, None))))),
    "the leader of the second may be another": valid(goes_on(held(holder(), told(1, 2)))),
    "the leader of the second is not known": valid(goes_on(held(holder(), told(None, None)))),
    "the leader of the second is another": valid(goes_on(held(holder(), told(2, 2)))),
    "one is given it twice": valid(
        holder().acquire(1, {"0": A}, epochs=told(1, 1)).acquire(1, {}).ended(A)
    ),
    "a final acquire holds nothing": valid(
        goes_on(held(Written().acquire(1, {"0": A}, final=True)))
    ),
    "a final acquire gives back what it has": valid(
        goes_on(held(holder().acquire(1, {}, final=True)))
    ),
}

PHANTOMS: dict[str, Case] = {
    "another value": invalid(Written().acquire(1, {"0": {0: "x"}}).ended(A), "phantom-record"),
    "a value where nothing is": invalid(
        Written().acquire(1, {"0": {0: "x"}}).ended({1: "b"}), "phantom-record"
    ),
    "a value behind the end of the read": valid(Written().acquire(1, {"0": {1: "b"}}).ended(A)),
    "two values at one offset": invalid(
        Written()
        .acquire(1, {"0": {1: "b"}})
        .settle(1, {}, "release")
        .acquire(2, {"0": {1: "c"}})
        .ended(A),
        "phantom-record",
    ),
    "two offsets, two values": valid(Written().acquire(1, {"0": {1: "b"}, "1": {1: "c"}}).ended(A)),
    "one record twice": invalid(Written().acquire(1, {"0": A}).twice().ended(A), "phantom-record"),
    "one record twice, at last": valid(
        Written().acquire(LAST, {"0": A}, final=True).twice().ended(A)
    ),
}

#: History, kinds of violations, verdict.
CASES: dict[str, Case] = {**LOST, **REDELIVERED, **HELD, **PHANTOMS}
