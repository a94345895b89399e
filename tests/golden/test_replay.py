"""A replay of a recorded run makes the plan, and aims at the nodes, that the golden files say."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec
import pytest

from splitbrain.contracts.errors import UsageError
from splitbrain.contracts.names import NodeName
from splitbrain.harness.run.options import TestOptions
from splitbrain.history.run_folder import RunFolder
from splitbrain.nemesis.kinds import machine_kind_names
from splitbrain.nemesis.scripted import SCRIPTED, least_time_limit_ms
from splitbrain.nemesis.targets import ClusterView
from tests.golden.goldens import Goldens
from tests.golden.nemesis_rendering import actual_words, planned_words
from tests.golden.replay_engine import replayed, resolved, scripted
from tests.golden.replay_stories import recorded, runs_of, write_run
from tests.golden.story import NODES, planned

#: Clusters that a replay may meet.
_VIEWS: Final = {
    "nobody leads": ClusterView(NODES),
    "n1 leads": ClusterView(NODES, leader=NODES[0]),
    "n4 leads after n2, of an observer too": ClusterView(
        *(NODES[:4], NODES[3], NODES[1]),
        ends={node: number for number, node in enumerate(NODES)},
        there=NODES[2],
        observers=NODES[4:],
    ),
}
_LIMITS_MS: Final = (20_000, 45_000)


def replay_lines(kind: str, folder: Path) -> Iterator[str]:
    """Lines of the replays of a kind's runs: their plans, and whom they hit."""
    for number, story in enumerate(runs_of(kind)):
        run = recorded(story, folder / f"{kind}-{number}")
        yield f"## {kind}, {story.name}: {story.sentence()}"
        schedules = {pinned: replayed(run.root, pinned=pinned).schedule for pinned in (False, True)}
        for pinned, schedule in schedules.items():
            for fault in schedule or ():
                yield f"{'pinned' if pinned else 'free'} {planned_words(fault)}"
        for name, view in _VIEWS.items() if number == 0 else ():
            for pinned, schedule in schedules.items():
                for fault in schedule or ():
                    actual = resolved(fault, view)
                    words = "nothing" if actual is None else actual_words(actual)
                    yield f"{name}, {'pinned' if pinned else 'free'}: {words}"


def options_lines(options: TestOptions, folder: Path) -> Iterator[str]:
    """All fields of the options that repeat a run."""
    fields = msgspec.structs.asdict(options.experiment) | msgspec.structs.asdict(options)
    del fields["experiment"]
    for name, value in fields.items():
        told = [planned_words(one) for one in value] if name == "schedule" else value
        yield f"{name} {told}".replace(str(folder), "FOLDER")


@pytest.mark.parametrize("letter", ["b-c", "d-f", "k-p", "r-w"])
def test_replays_of_recorded_runs_are_what_the_golden_file_says(
    letter: str, goldens: Goldens, tmp_path: Path
) -> None:
    kinds = [kind for kind in machine_kind_names() if letter[0] <= kind[0] <= letter[-1]]
    lines = [line for kind in kinds for line in replay_lines(kind, tmp_path)]
    goldens.compare(f"replay/kinds_{letter}.txt", lines)


def test_every_kind_is_in_a_golden_file_of_replays(goldens: Goldens) -> None:
    texts = [path.read_text() for path in (goldens.folder / "replay").glob("kinds_*.txt")]
    assert all(
        any(f"## {kind}, in order" in text for text in texts) for kind in machine_kind_names()
    )


def test_all_options_of_a_replay_are_what_the_golden_file_says(
    goldens: Goldens, tmp_path: Path
) -> None:
    faults = [planned("kill", "leader"), planned("pause", "follower", index=1, at_ms=9000)]
    actual = resolved(faults[0], _VIEWS["n1 leads"])
    run = write_run(tmp_path / "runs" / "test" / "run", [*faults, actual], [], 2)
    lines: list[str] = []
    for pinned in (False, True):
        lines += [f"## replayed{', pinned' * pinned}"]
        lines += options_lines(replayed(run.root, pinned=pinned), tmp_path)
    for name, content in _damaged(run).items():
        run.schedule.write_bytes(content)
        lines += [f"## {name}"]
        try:
            schedule = replayed(run.root, pinned=True).schedule or ()
            lines += map(planned_words, schedule)
        except UsageError as error:
            lines.append(f"refused: {error}".replace(str(tmp_path), "FOLDER"))
    goldens.compare("replay/options.txt", lines)


def _damaged(run: RunFolder) -> dict[str, bytes]:
    """A schedule's file after a bad end."""
    whole = run.schedule.read_bytes()
    first, second, rest = whole.split(b"\n", 2)
    return {
        "the last line is torn": whole[:-20],
        "a planned fault is torn": first + b"\n" + second[:30],
        "a planned fault is missing": first + b"\n" + rest,
        "a line is none of ours": first + b"\n{}\n" + second + b"\n" + rest,
        "a line is not valid JSON": b"{" + whole,
        "there is nothing": b"",
        "a fault was injected twice, elsewhere the second time": whole
        + rest.replace(b'"nodes":["n1"]', b'"nodes":["n2"]'),
    }


def test_plans_with_a_name_are_what_the_golden_file_says(goldens: Goldens) -> None:
    lines: list[str] = []
    for name in sorted(SCRIPTED):
        limits = sorted({least_time_limit_ms(name), *_LIMITS_MS})
        for limit_ms in limits:
            lines.append(f"## {name} in {limit_ms} ms")
            lines += _scripted_lines(name, limit_ms, NODES)
    goldens.compare("replay/scripted.txt", lines)


def _scripted_lines(name: str, limit_ms: int, nodes: tuple[NodeName, ...]) -> Iterator[str]:
    try:
        for fault in scripted(name, limit_ms, nodes):
            yield planned_words(fault)
    except UsageError as error:
        yield f"refused: {error}"
