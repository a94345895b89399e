"""One Spark session for the whole test run: starting one may take a minute on a busy machine."""

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from spark_analysis.session import spark_session


@pytest.fixture(scope="session")
def session() -> Iterator[SparkSession]:
    with spark_session(application="splitbrain tests") as started:
        yield started
