"""Early decision whether enough of several tries failed. Pure."""

import msgspec


class Repetition(msgspec.Struct, frozen=True):
    """Number of tries of one plan, and of the failures that it needs."""

    tries: int
    at_least: int

    def settled(self, failed: int, tried: int) -> bool | None:
        """Return True when enough failed, False when enough no longer can, None to go on.

        Args:
            failed: tries that failed with the wanted verdict.
            tried: tries made so far, 0 to ``tries``.
        """
        if failed >= self.at_least:
            return True
        if failed + self.tries - tried < self.at_least:
            return False
        return None
