"""Choice of worlds by their traits: it leaves seeds out, and changes none."""

from pathlib import Path

import pytest

from splitbrain.contracts.errors import UsageError
from splitbrain.harness.campaign.sweep.options import SimOptions, seed_words
from splitbrain.harness.campaign.sweep.trial import draw, drawn_traits, try_seed
from splitbrain.harness.campaign.sweep.world_traits import (
    SAMPLE,
    TRAITS,
    Traits,
    check_world,
    has_traits,
    read_world,
)
from splitbrain.nemesis.sorts import drawn_kinds


def sample(**options: bool | str) -> list[Traits]:
    return [drawn_traits(seed, SimOptions(**options)) for seed in SAMPLE]  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def drawn() -> list[Traits]:
    return sample()


@pytest.mark.parametrize(
    ("world", "is_world"),
    [
        ("voters=5", lambda world: world.nodes == 5),
        ("snapshots", lambda world: "snapshot_max_new_record_bytes" in world.settings),
        ("snapshots=no", lambda world: "snapshot_max_new_record_bytes" not in world.settings),
        ("fault=rot", lambda world: any(fault.kind[:4] == "rot-" for fault in world.faults)),
        ("fault=wipe", lambda world: any(fault.kind == "wipe" for fault in world.faults)),
        ("crowd", lambda world: world.load.clients > 6),
        ("weather=no", lambda world: world.network.reset_chance == world.disk.slow_chance == 0),
        (
            "voters=3, workload=set,fault=kill,fault=power",
            lambda world: (
                (world.nodes, world.load.workload) == (3, "set")
                and {"kill", "power"} <= {fault.kind for fault in world.faults}
            ),
        ),
    ],
)
def test_the_worlds_that_are_asked_for_have_the_traits_and_there_are_some(
    world: str, is_world: object, drawn: list[Traits]
) -> None:
    wanted = read_world(world)
    check_world(wanted, drawn)
    chosen = [seed for seed in SAMPLE if has_traits(wanted, drawn[seed])]
    assert chosen
    assert all(is_world(draw(seed, SimOptions())) for seed in chosen)  # type: ignore[operator]
    if "=no" not in world:
        others = [seed for seed in SAMPLE if seed not in chosen]
        assert not any(is_world(draw(seed, SimOptions())) for seed in others)  # type: ignore[operator]


@pytest.mark.parametrize("beyond_promise", [False, True])
def test_every_kind_that_seeds_draw_may_be_asked_for(beyond_promise: bool) -> None:
    there = sample(beyond_promise=beyond_promise)
    for kind in drawn_kinds(beyond_promise=beyond_promise):
        check_world((("fault", kind),), there)


def test_each_value_is_in_enough_worlds_to_be_told_from_one_that_is_not_there(
    drawn: list[Traits],
) -> None:
    for name in drawn[0]:
        for value in {value for traits in drawn for value in traits[name]}:
            assert sum(value in traits[name] for traits in drawn) >= 5, (name, value)


@pytest.mark.parametrize(
    ("world", "options", "problem", "next_step"),
    [
        ("voters=4", {}, "no seed draws a world with voters=4", "The values of voters are: 3, 5"),
        ("voters", {}, "no seed draws a world with voters=yes", "The values of voters are: 3, 5"),
        ("vters=3", {}, "worlds have no trait 'vters' (--world)", "Did you mean 'voters'?"),
        ("voters=3,voters=5", {}, "--world names voters twice", "Name it once"),
        (
            "workload=set",
            {"state_machine": "metadata"},
            "no seed draws a world with workload=set",
            "The values of workload are: topics",
        ),
    ],
)
def test_what_no_world_has_is_refused_with_what_there_is(
    world: str, options: dict[str, str], problem: str, next_step: str
) -> None:
    with pytest.raises(UsageError) as caught:
        check_world(read_world(world), sample(**options))
    assert (caught.value.problem, caught.value.next_step) == (problem, next_step)


def test_a_seed_is_the_same_world_whatever_is_chosen(drawn: list[Traits], tmp_path: Path) -> None:
    options = SimOptions(world="voters=5", runs_folder=tmp_path)
    seed = next(seed for seed in SAMPLE if has_traits(read_world("voters=5"), drawn[seed]))
    other = next(seed for seed in SAMPLE if not has_traits(read_world("voters=5"), drawn[seed]))
    assert draw(seed, options) == draw(seed, SimOptions())
    assert "--world" not in seed_words(options, seed)
    skipped = try_seed(options, other, "first")
    assert (skipped.is_skipped, skipped.steps, skipped.crash) == (True, 0, None)


def test_the_page_on_the_simulation_lists_the_traits(drawn: list[Traits]) -> None:
    page = (Path(__file__).parents[5] / "docs" / "simulation.md").read_text(encoding="utf-8")
    assert set(TRAITS) < set(drawn[0])
    for name in drawn[0]:
        assert f"| `{name}` |" in page
