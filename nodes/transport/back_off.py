"""How long a link to a peer waits before it connects again; pure.

Doubles with each failure up to a limit, and stays well below the timeout of the request that waits
for the connection: a pause above it would mean that nothing is ever tried.
"""

from typing import Final

#: Pause before the connection attempt that follows a failed one; doubles up to the second.
_BACK_OFF_US_MIN: Final = 10_000
_BACK_OFF_US_MAX: Final = 80_000
#: More doublings than lead to the limit.
_DOUBLINGS_MAX: Final = 10


def back_off_us(failed_attempts_count: int, timeout_ms: int) -> int:
    """Microseconds to wait before the next attempt; 0 where none has failed.

    Args:
        failed_attempts_count: in a row, up to now.
        timeout_ms: of the request that needs the connection.
    """
    if not failed_attempts_count:
        return 0
    doubled_us = _BACK_OFF_US_MIN << min(failed_attempts_count - 1, _DOUBLINGS_MAX)
    return min(doubled_us, _BACK_OFF_US_MAX, timeout_ms * 500)
