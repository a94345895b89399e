"""How long a link waits before it connects again."""

from hypothesis import given
from hypothesis import strategies as st

from splitbrain.nodes.transport.back_off import back_off_us

timeouts_ms = st.integers(1, 60_000)


def test_the_first_attempt_is_made_at_once() -> None:
    assert back_off_us(0, 1) == 0


@given(st.integers(1, 1_000), timeouts_ms)
def test_the_pause_leaves_half_of_the_timeout_for_the_attempt(
    failed_attempts_count: int, timeout_ms: int
) -> None:
    """Found by the simulation: a back-off above the timeout meant that nothing was ever tried."""
    assert 0 < back_off_us(failed_attempts_count, timeout_ms) * 2 <= timeout_ms * 1_000


@given(st.integers(1, 1_000), timeouts_ms)
def test_the_pause_never_shrinks_while_attempts_fail(
    failed_attempts_count: int, timeout_ms: int
) -> None:
    now = back_off_us(failed_attempts_count, timeout_ms)
    assert now <= back_off_us(failed_attempts_count + 1, timeout_ms)
