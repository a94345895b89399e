"""Analyses of some parts alone: all jobs take ten seconds, and most say nothing new to a test."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from splitbrain.contracts.analysis import run as rows
from splitbrain.contracts.analysis.run import Row
from splitbrain.spark_analysis import analyze as analyze_module

FOUND_BY: dict[str, type[Row]] = {
    "throughput": rows.Throughput,
    "lost": rows.LostCommit,
    "phantom": rows.PhantomCommit,
    "reigns": rows.Reign,
    "divergences": rows.Divergence,
    "duplicates": rows.Duplicate,
    "stale_reads": rows.StaleRead,
    "client_errors": rows.ClientError,
}


@contextmanager
def only(*parts: str) -> Iterator[None]:
    """Have an analysis tell these parts, and carry out the jobs that find them."""
    jobs = {FOUND_BY[part]: analyze_module.JOBS[FOUND_BY[part]] for part in parts}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(analyze_module, "JOBS", jobs)
        patch.setattr(analyze_module, "PARTS", {part: analyze_module.PARTS[part] for part in parts})
        yield
