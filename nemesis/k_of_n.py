"""Whether enough of some tries failed, as soon as it is settled. Pure."""

import msgspec


class Asking(msgspec.Struct, frozen=True):
    """How often one plan is tried, and how often it must fail."""

    tries: int
    at_least: int

    def settled(self, failed: int, tried: int) -> bool | None:
        """True: enough have failed; False: enough cannot fail any more; None: go on.

        Args:
            failed: how many failed with the wanted verdict.
            tried: how many were made, 0 to ``tries``.
        """
        if failed >= self.at_least:
            return True
        if failed + self.tries - tried < self.at_least:
            return False
        return None
