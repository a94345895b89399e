"""Random waits of elections, in microseconds. The only user of the random source."""

from splitbrain.nodes.quorum.identifiers import Microseconds
from splitbrain.nodes.quorum.random_source import RandomSource
from splitbrain.nodes.quorum.settings import QuorumSettings


class ElectionTiming:
    """Draws the waits; remembers how many elections were lost in a row."""

    def __init__(self, settings: QuorumSettings, random: RandomSource) -> None:
        self._settings = settings
        self._random = random
        self._defeats = 0

    def election_timeout(self) -> Microseconds:
        """Return a new wait, uniform between the two settings."""
        low = self._settings.election_timeout_ms_min
        high = self._settings.election_timeout_ms_max
        return Microseconds(int((low + (high - low) * self._random.random()) * 1000))

    def back_off_after_defeat(self) -> Microseconds:
        """Return a new wait, uniform below a bound that doubles with every defeat in a row."""
        self._defeats += 1
        bound = min(
            self._settings.retry_back_off_ms << min(self._defeats, 16),
            self._settings.election_back_off_ms_max,
        )
        return Microseconds(int(bound * self._random.random() * 1000))

    def forget_defeats(self) -> None:
        """Note that a leader was found: the next lost election is the first again."""
        self._defeats = 0

    def yield_time(self) -> Microseconds:
        """Return a new wait, how long a preferred voter goes first; half an election timeout.

        That one has to write its vote to its disk meanwhile. How long messages take need not be
        covered: after the wait the others are asked again, and by then its request for a vote is
        here. At random, so that two that yield to the same one do not stand together after it.
        """
        return Microseconds(self.election_timeout() // 2)

    def succession_delay(self, position: int | None) -> Microseconds:
        """How long the preferred successor at this position, from 0, lets others go first.

        None (not named): at random, no longer than the second successor waits.
        """
        base = self._settings.retry_back_off_ms * 1000
        if position is None:
            return Microseconds(int(base * self._random.random()))
        return Microseconds(0 if position == 0 else base << min(position - 1, 16))
