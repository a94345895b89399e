"""The load does with every outcome, in every ending, what the golden files say."""

import pytest

from harness.clients import reader_slots
from tests.golden.goldens import Goldens
from tests.golden.load_engine import loaded
from tests.golden.load_rendering import rendered_load, rendered_operation
from tests.golden.load_stories import LOAD_STORIES
from tests.golden.load_story import OBSERVERS, VOTERS
from workloads.workload import workload, workload_names

_SLOTS = 5
_EACH = 50
_IN_A_LINE = 10
#: The choices of each workload.
_CHOICES: dict[str, tuple[dict[str, str], ...]] = {
    "register": ({"values": "small"}, {"values": "unique"}),
    "set": ({},),
    "topics": ({"brokers": "view"}, {"brokers": "change"}),
}


@pytest.mark.parametrize("family", sorted(LOAD_STORIES))
def test_the_load_does_what_its_golden_file_says(family: str, goldens: Goldens) -> None:
    lines = [line for story in LOAD_STORIES[family] for line in rendered_load(loaded(story))]
    goldens.compare(f"load/{family}.txt", lines)


def test_every_golden_file_of_the_load_is_that_of_a_family(goldens: Goldens) -> None:
    assert goldens.names("load") == set(LOAD_STORIES)


@pytest.mark.parametrize("name", workload_names())
def test_the_stream_of_operations_is_what_its_golden_file_says(name: str, goldens: Goldens) -> None:
    goldens.compare(f"operations/{name}.txt", stream_lines(name))


def stream_lines(name: str) -> list[str]:
    """The first operations of a workload, of each of its choices and two seeds."""
    return [
        line
        for options in _CHOICES[name]
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
