from pathlib import Path

import pytest

from tests.golden.goldens import Goldens


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--rewrite-goldens",
        action="store_true",
        help="write what the machines do now into the golden files; then read the diff",
    )


@pytest.fixture
def goldens(request: pytest.FixtureRequest) -> Goldens:
    is_rewriting = bool(request.config.getoption("--rewrite-goldens", default=False))
    return Goldens(Path(__file__).parent, is_rewriting=is_rewriting)
