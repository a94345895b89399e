"""Effects on their way out; messages wait here until what they promise is durable.

One rule for all messages: none leaves before the quorum state under which it was made is durable.
So a vote, a vote request, an answer in a new epoch all wait for the write that they depend on
(INV-05). Never reorders messages.
"""

from collections import deque

from splitbrain.nodes.quorum.effects import (
    AnswerFetchSnapshot,
    Effect,
    PersistQuorumState,
    SendAnswer,
    SendRequest,
)
from splitbrain.nodes.quorum.identifiers import ConnectionId, CorrelationId
from splitbrain.nodes.quorum.persistent import QuorumState

Message = SendRequest | SendAnswer | AnswerFetchSnapshot


class Outbox:
    """Collects the effects of one step."""

    def __init__(self) -> None:
        self._effects: list[Effect] = []
        self._held: deque[tuple[int, Message]] = deque()
        #: Latest version of the quorum state that was submitted, and that is durable.
        self.submitted_version = 0
        self.persisted_version = 0

    @property
    def state_is_durable(self) -> bool:
        """Whether the present quorum state is on disk."""
        return self.persisted_version == self.submitted_version

    def emit(self, effect: Effect) -> None:
        """For everything that is no message."""
        self._effects.append(effect)

    def persist(self, state: QuorumState) -> None:
        """Submit a quorum state; it takes the place of one submitted in the same step."""
        self._effects = [e for e in self._effects if not isinstance(e, PersistQuorumState)]
        self.submitted_version += 1
        self._effects.append(PersistQuorumState(self.submitted_version, state))

    def send(self, message: Message) -> None:
        """Lets a message go once the present quorum state is durable."""
        if self.state_is_durable:
            self._effects.append(message)
        else:
            self._held.append((self.submitted_version, message))

    def release(self) -> None:
        """Lets go what waited for the versions that are durable by now."""
        while self._held and self._held[0][0] <= self.persisted_version:
            self._effects.append(self._held.popleft()[1])

    def withdraw_request(self, correlation: CorrelationId) -> bool:
        """Take back a request that has not left yet; False if it has."""
        kept = deque(
            (version, message)
            for version, message in self._held
            if not (isinstance(message, SendRequest) and message.correlation == correlation)
        )
        withdrawn = len(kept) < len(self._held)
        self._held = kept
        return withdrawn

    def drop_answers(self, connection: ConnectionId) -> None:
        """Forgets the answers for a connection that is gone."""
        self._held = deque(
            (version, message)
            for version, message in self._held
            if isinstance(message, SendRequest) or message.connection != connection
        )

    def drain(self) -> tuple[Effect, ...]:
        """The effects of this step, in order; the outbox is empty afterwards but for held ones."""
        effects = tuple(self._effects)
        self._effects.clear()
        return effects
