"""A seed is the same world everywhere: issue 5, item 2."""

import json
import os
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.integration.other_pythons import VERSIONS, OtherPython, copy_sources, other_python

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]


class Sample(NamedTuple):
    """Seeds whose worlds are compared."""

    seeds: str
    #: Run before them in the same process.
    others: str
    #: Run alone as well.
    alone: tuple[int, ...]


#: Small worlds; their leaders change and their logs are cut.
FEW = Sample("2:5", "1002:1004", (4,))
#: Tests that a change is not kept waiting for.
MANY = Sample("0:20", "1000:1100", (7, 19))


@pytest.fixture(scope="module")
def pythons(tmp_path_factory: pytest.TempPathFactory) -> list[OtherPython]:
    """Every version that is here; under CI all of them must be."""
    sources = tmp_path_factory.mktemp("sources")
    copy_sources(sources)
    found = {version: other_python(version, sources) for version in VERSIONS}
    missing = [version for version, python in found.items() if python is None]
    if os.environ.get("CI") == "true":
        assert not missing, (
            f"CPython {', '.join(missing)} is not on this machine; install it, such as with"
            f" `.tools/uv/bin/uv python install {' '.join(missing)}`"
        )
    elif missing:
        sys.stderr.write(f"not compared, for it is not here: CPython {', '.join(missing)}\n")
    return [python for python in found.values() if python is not None]


@pytest.fixture(
    scope="module",
    params=[pytest.param(FEW, id="few"), pytest.param(MANY, id="many", marks=pytest.mark.nightly)],
)
def sample(request: pytest.FixtureRequest) -> Sample:
    return request.param


def traced(python: OtherPython, *more: str, seeds: str, hash_seed: str = "0") -> list[str]:
    """One line a seed, and the digest of all evidence."""
    printed = python.run(
        "-m", "bench.trace_hashes", "--seeds", seeds, *more, hash_seed=hash_seed
    ).splitlines()
    first, _, end = seeds.partition(":")
    facts = json.loads(printed[-1])
    assert facts["python"].startswith(f"{python.version}.")
    assert len(printed) == int(end) - int(first) + 1
    return [*printed[:-1], facts["evidence"]]


@pytest.fixture(scope="module")
def expected(pythons: list[OtherPython], sample: Sample) -> list[str]:
    """The seeds, each in one process with those before it, on the first version that is here."""
    lines = traced(pythons[0], seeds=sample.seeds)
    assert len(set(lines)) == len(lines), "different seeds are different worlds"
    return lines


def test_every_version_of_python_gives_the_same_worlds(
    pythons: list[OtherPython], sample: Sample, expected: list[str]
) -> None:
    for python in pythons[1:]:
        assert traced(python, hash_seed="random", seeds=sample.seeds) == expected, python.version


@pytest.mark.parametrize("hash_seed", ["1", "4242", "4294967295"])
def test_no_order_of_hashes_shows(
    pythons: list[OtherPython], sample: Sample, expected: list[str], hash_seed: str
) -> None:
    assert traced(pythons[-1], hash_seed=hash_seed, seeds=sample.seeds) == expected


def test_other_seeds_in_the_same_process_change_nothing(
    pythons: list[OtherPython], sample: Sample, expected: list[str]
) -> None:
    assert traced(pythons[0], "--after", sample.others, seeds=sample.seeds) == expected


def test_a_seed_alone_is_what_it_is_after_others(
    pythons: list[OtherPython], sample: Sample, expected: list[str]
) -> None:
    for seed in sample.alone:
        alone = traced(pythons[0], seeds=f"{seed}:{seed + 1}")
        assert alone[0] == expected[seed - int(sample.seeds.partition(":")[0])]


def test_keeping_the_story_changes_nothing(
    pythons: list[OtherPython], sample: Sample, expected: list[str]
) -> None:
    assert traced(pythons[0], "--recording", seeds=sample.seeds) == expected


def test_optimised_away_assertions_change_nothing(
    pythons: list[OtherPython], sample: Sample, expected: list[str]
) -> None:
    printed = pythons[0].run("-O", "-m", "bench.trace_hashes", "--seeds", sample.seeds).splitlines()
    assert printed[:-1] == expected[:-1]


#: Source of a streams' prefix, and how the planted ones differ: between hash seeds, and
#: after other seeds in the same process.
PREFIX = 'f"{seed}/{salt}"'
ORDER_OF_A_SET = 'f"{seed}/{salt}" + "".join({"a", "b", "c", "d", "e"})'
STATE_OF_A_MODULE = 'f"{seed}/{salt}/{_MADE.append(seed) or len(_MADE)}"'


@pytest.mark.parametrize(
    "planted",
    [
        pytest.param(ORDER_OF_A_SET, id="order"),
        pytest.param(STATE_OF_A_MODULE, id="state", marks=pytest.mark.nightly),
    ],
)
def test_a_planted_dependence_shows(
    pythons: list[OtherPython], tmp_path: Path, planted: str
) -> None:
    copy_sources(tmp_path)
    module = tmp_path / "splitbrain" / "simulation" / "world" / "streams.py"
    text = module.read_text(encoding="utf-8")
    assert PREFIX in text
    text = text.replace(PREFIX, planted).replace("import random\n", "import random\n\n_MADE = []\n")
    module.write_text(text, encoding="utf-8")
    broken = OtherPython(pythons[0].version, pythons[0].program, tmp_path)
    plain = traced(broken, hash_seed="1", seeds="2:4")
    other = traced(broken, "--after", "1002:1003", hash_seed="2", seeds="2:4")
    assert plain != other


def test_simulation_imports_nothing_heavy(pythons: list[OtherPython]) -> None:
    """Sweeps start a process per core, and bisecting a seed should need no set-up."""
    program = (
        "import sys, bench.trace_hashes\n"
        "print(*sorted({name.partition('.')[0] for name in sys.modules}"
        " - set(sys.stdlib_module_names)))"
    )
    imported = set(pythons[0].run("-c", program).split())
    assert imported == {"__main__", "bench", "crc32c", "msgspec", "splitbrain"}
