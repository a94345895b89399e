"""The pytest plugin, as pytest loads it wherever splitbrain is installed.

It must cost nothing where no test asks for the fixture: everything else is imported by the fixture.
"""

from collections.abc import Generator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from splitbrain.harness.testing.fixture import Splitbrain

#: Seeds that are drawn are easy to read aloud.
_DRAWN_BELOW = 1_000_000
_OF_SESSION = pytest.StashKey[int]()
_OF_TEST: "pytest.StashKey[Splitbrain]" = pytest.StashKey()
_OF_WORKER = "splitbrain_seed"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Offer the options."""
    group = parser.getgroup("splitbrain", "clusters under faults")
    group.addoption(
        "--splitbrain-seed", metavar="N", help="Seed of all clusters; drawn and shown if not given."
    )
    group.addoption(
        "--splitbrain-runs",
        metavar="FOLDER",
        help="Where run folders are made; by default below each test's tmp_path.",
    )
    group.addoption(
        "--splitbrain-runtime",
        metavar="NAME",
        default="docker",
        help="Runtime of clusters whose test names none: docker or local.",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Settle the seed, the same one for all workers of pytest-xdist."""
    worker: dict[str, Any] | None = getattr(config, "workerinput", None)
    config.stash[_OF_SESSION] = (
        _seed(config.getoption("--splitbrain-seed")) if worker is None else worker[_OF_WORKER]
    )
    runs = config.getoption("--splitbrain-runs")
    if runs is not None and Path(runs).exists() and not Path(runs).is_dir():
        message = f"--splitbrain-runs {runs!r} is no folder; name a folder, which may be made"
        raise pytest.UsageError(message)


def _seed(given: str | None) -> int:
    if given is None:
        import secrets

        return secrets.randbelow(_DRAWN_BELOW)
    from splitbrain.contracts.scenario import SEED_MAX

    if not (given.isascii() and given.isdigit() and int(given) <= SEED_MAX):
        message = f"--splitbrain-seed cannot be {given!r}; give a whole number from 0 to {SEED_MAX}"
        raise pytest.UsageError(message)
    return int(given)


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Hand the seed to a worker of pytest-xdist."""
    node.workerinput[_OF_WORKER] = node.config.stash[_OF_SESSION]


def pytest_report_header(config: pytest.Config) -> str:
    """Show the seed."""
    return f"splitbrain: --splitbrain-seed {config.stash[_OF_SESSION]}"


@pytest.fixture(name="splitbrain")
def splitbrain_fixture(request: pytest.FixtureRequest, tmp_path: Path) -> "Generator[Splitbrain]":
    """Make clusters under faults: ``with splitbrain.cluster(SYSTEM) as cluster:``."""
    from splitbrain.harness.testing.fixture import Splitbrain

    config, node = request.config, request.node
    runs = config.getoption("--splitbrain-runs")
    made = Splitbrain(
        node.nodeid,
        node.name,
        seed=config.stash[_OF_SESSION],
        runs=tmp_path / "runs" if runs is None else config.invocation_params.dir / runs,
        runtime=str(config.getoption("--splitbrain-runtime")),
        beside=node.path.parent,
    )
    node.stash[_OF_TEST] = made
    yield made
    made.close()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Tell with a failure how it is repeated and seen."""
    report = yield
    made = item.stash.get(_OF_TEST, None)
    if report.failed and made is not None:
        report.sections.append(("splitbrain", made.story()))
    return report
