"""What a fault lets be seen while others come and go."""

from collections.abc import Callable, Sequence

from splitbrain.contracts.fault import Link
from splitbrain.contracts.names import NodeName
from splitbrain.nemesis.acts import Kill, Start
from splitbrain.nemesis.effects import Doing, Evidence, Look
from splitbrain.nemesis.expectations import Expectation, LinkIs
from splitbrain.nemesis.holds import Holds
from splitbrain.nemesis.undisturbed import undisturbed

N1, N2, N3 = NodeName("n1"), NodeName("n2"), NodeName("n3")
CUT, OPEN = LinkIs(Link(N1, N3), open=False), LinkIs(Link(N1, N2), open=True)


def seen_of(
    holds: Holds,
    expectations: Sequence[Expectation],
    look: Callable[[Sequence[Expectation]], Evidence],
    *,
    is_healed: bool = False,
) -> Evidence:
    """What is seen of the first fault where each look shows what ``look`` says."""

    def ended(_nodes: Sequence[NodeName]) -> Doing[Sequence[NodeName]]:
        yield from ()
        return ()

    wanted = Look(tuple(expectations), 0, 1_000_000, may_be_cut_short=True)
    doing = undisturbed(holds, 0, wanted, ended=ended if is_healed else None)
    answer: Evidence | None = None
    try:
        while True:
            effect = doing.send(answer)
            assert isinstance(effect, Look)
            answer = look(effect.expectations)
    except StopIteration as over:
        return over.value


def test_what_another_fault_keeps_from_being_seen_is_left_out_and_told() -> None:
    holds = Holds()
    holds.admit(1, Kill((N2,)))
    looks: list[Sequence[Expectation]] = []

    def look(wanted: Sequence[Expectation]) -> Evidence:
        looks.append(wanted)
        return Evidence(True, "seen")

    seen = seen_of(holds, [CUT, OPEN], look)
    assert (seen.seen, seen.sentence) == (True, "seen; 1 not looked for beside other faults")
    assert looks == [(CUT,)]


def test_where_all_is_kept_from_being_seen_a_heal_passes_and_a_bite_does_not() -> None:
    holds = Holds()
    holds.admit(1, Kill((N2,)))

    def look(_: Sequence[Expectation]) -> Evidence:
        raise AssertionError

    for is_healed in (False, True):
        assert seen_of(holds, [OPEN], look, is_healed=is_healed).seen is is_healed


def test_a_fault_that_begins_amid_a_look_makes_no_bite_a_miss() -> None:
    holds = Holds()
    looks: list[Sequence[Expectation]] = []

    def look(wanted: Sequence[Expectation]) -> Evidence:
        looks.append(wanted)
        if len(looks) == 1:
            holds.admit(1, Kill((N2,)))
        return Evidence(OPEN not in wanted, "looked")

    assert seen_of(holds, [CUT, OPEN], look).seen
    assert looks == [(CUT, OPEN), (CUT,)]


def test_a_fault_that_comes_and_goes_amid_a_look_is_looked_past() -> None:
    holds = Holds()
    looks: list[Sequence[Expectation]] = []

    def look(wanted: Sequence[Expectation]) -> Evidence:
        looks.append(wanted)
        if len(looks) == 1:
            holds.admit(1, Kill((N2,)))
            holds.admit(1, Start((N2,)))
            holds.done(1, Start((N2,)))
        return Evidence(len(looks) > 1, "looked")

    assert seen_of(holds, [CUT, OPEN], look).seen
    assert looks == [(CUT, OPEN), (CUT, OPEN)]


def test_what_is_not_seen_though_nobody_disturbs_is_a_miss_after_one_look() -> None:
    looks: list[Sequence[Expectation]] = []

    def look(wanted: Sequence[Expectation]) -> Evidence:
        looks.append(wanted)
        return Evidence(False, "not seen")

    assert not seen_of(Holds(), [CUT], look).seen
    assert len(looks) == 1
