"""Every port of real nodes under frames that no honest peer sends; the night sends a million."""

from pathlib import Path

import pytest

from bench.port_fuzz import fuzz

pytestmark = pytest.mark.slow

FRAMES_COUNT = 8_000


def test_nodes_stay_up_and_small_and_serve_others(tmp_path: Path) -> None:
    problems = fuzz(1, FRAMES_COUNT, tmp_path)
    assert not problems, "\n".join(
        (*problems, f"again: python -m bench.port_fuzz --seed 1 --frames {FRAMES_COUNT}")
    )
