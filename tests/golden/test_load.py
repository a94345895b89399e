"""The load does with every outcome, in every ending, what the golden files say."""

from itertools import pairwise

import pytest

from splitbrain.harness.run.load.routes import reader_slots
from splitbrain.history.records import Event
from splitbrain.workloads.workload import workload, workload_names
from tests.golden.goldens import Goldens
from tests.golden.load_engine import loaded
from tests.golden.load_rendering import rendered_load, rendered_operation
from tests.golden.load_stories import LOAD_STORIES
from tests.golden.load_story import OBSERVERS, VOTERS

_SLOTS = 5
_EACH = 50
_IN_A_LINE = 10
#: The choices of each workload that has any.
_CHOICES: dict[str, tuple[dict[str, str], ...]] = {
    "register": ({"values": "small"}, {"values": "unique"}),
    "queue": ({"promise": "delivery"},),
    "topics": ({"brokers": "view"}, {"brokers": "change"}),
}


@pytest.mark.parametrize("family", sorted(LOAD_STORIES))
def test_the_load_does_what_its_golden_file_says(family: str, goldens: Goldens) -> None:
    lines = [line for story in LOAD_STORIES[family] for line in rendered_load(loaded(story))]
    goldens.compare(f"load/{family}.txt", lines)


def issued(name: str) -> list[list[int]]:
    """Moments at which each slot began an operation in a story, ms."""
    (story,) = (one for one in LOAD_STORIES["courses"] if one.name == name)
    moments: list[list[int]] = [[] for _ in range(_SLOTS)]
    for time_us, entry in loaded(story).entries:
        if isinstance(entry, Event) and entry.type == "invoke" and not entry.final:
            moments[entry.process % _SLOTS].append(time_us // 1000)
    return moments


def test_a_slot_that_lost_time_catches_up_at_a_bounded_pace() -> None:
    slots = issued("a slot catches up after a lost second and a half")
    counts = [len(moments) for moments in slots]
    assert max(counts) - min(counts) <= 1
    late = slots[1]
    lost_ms, *pauses_ms = sorted((b - a for a, b in pairwise(late)), reverse=True)
    assert lost_ms >= 1_500
    # The timetable has an operation each 200 ms for a slot, and who is late may be thrice as fast.
    assert min(pauses_ms) >= 200 // 3
    assert max(pauses_ms) <= 201


def test_quick_refusals_do_not_spin() -> None:
    pauses_ms = [
        b - a for moments in issued("quick refusals do not spin") for a, b in pairwise(moments)
    ]
    assert len(pauses_ms) >= 10
    assert min(pauses_ms) > 0


def test_every_golden_file_of_the_load_is_that_of_a_family(goldens: Goldens) -> None:
    assert goldens.names("load") == set(LOAD_STORIES)


@pytest.mark.parametrize("name", workload_names())
def test_the_stream_of_operations_is_what_its_golden_file_says(name: str, goldens: Goldens) -> None:
    goldens.compare(f"operations/{name}.txt", stream_lines(name))


def stream_lines(name: str) -> list[str]:
    """The first operations of a workload, of each of its choices and two seeds."""
    return [
        line
        for options in _CHOICES.get(name, ({},))
        for seed in (1, 2)
        for slots in (_SLOTS, 2 * len(VOTERS) + 1)
        for line in _stream(name, seed, slots, options)
    ]


def _stream(name: str, seed: int, slots: int, options: dict[str, str]) -> list[str]:
    """The operations of a few slots, ten a line, and the final reads behind them."""
    observers = OBSERVERS if name == "topics" else ()
    readers = reader_slots(VOTERS, slots, observers)
    stream = workload(name, seed=seed, slots=slots, readers=readers, options=options)
    chosen = " ".join(f"{key}={value}" for key, value in options.items())
    lines = [f"## {name} {chosen} seed {seed}, {slots} slots, readers {sorted(readers)}"]
    for begin in range(0, _EACH, _IN_A_LINE):
        for slot in range(_SLOTS):
            those = [stream.operation(slot, n) for n in range(begin, begin + _IN_A_LINE)]
            lines.append(f"{slot}.{begin} {'; '.join(map(rendered_operation, those))}")
    lines.append(f"final {'; '.join(map(rendered_operation, stream.final_reads()))}")
    return lines
