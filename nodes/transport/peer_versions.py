"""APIs of one connection's peer: asked before the first request, as Kafka's own nodes do.

A peer may be of another release, even another one at each connection, so the answer belongs to the
connection and goes with it: without an answer no version is known.

Source: KIP-511; ``NetworkClient`` of Kafka asks in the same order.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import Final

import msgspec

from splitbrain.nodes.quorum.messages import ErrorCode, VoteRequest
from splitbrain.nodes.wire.api_versions import (
    ApiVersionsRequest,
    ApiVersionsResponse,
    choose_version,
)
from splitbrain.nodes.wire.apis import PRE_VOTE_SINCE, SUPPORTED_VERSIONS, ApiKey, VersionRange
from splitbrain.nodes.wire.calls import TABLES, ReceivedReply
from splitbrain.nodes.wire.errors import UnsupportedAnswerError, error_named
from splitbrain.nodes.wire.messages import api_key_of, decode_answer, encode_request

_ANSWERS_KEPT_MAX: Final = 16
#: Number of the question; the quorum's own requests come after its answer.
_CORRELATION: Final = 0
#: Kafka refuses a request that names neither; it logs them, no more.
_ASKER: Final = ApiVersionsRequest(client_software_name="splitbrain", client_software_version="1")


class PeerVersions:
    """The question for one connection, and what the answer allows."""

    def __init__(
        self, client_id: str, learned: Callable[[ApiVersionsResponse], None] = lambda _: None
    ) -> None:
        """Nothing is known yet; ``learned`` gets what the peer serves, once it is known."""
        self._client_id = client_id
        self._learned = learned
        self._asked_version = SUPPORTED_VERSIONS[ApiKey.API_VERSIONS].highest
        self._answer: ApiVersionsResponse | None = None
        #: Versions chosen by that answer already.
        self._chosen: dict[tuple[ApiKey, VersionRange], int] = {}

    @property
    def is_known(self) -> bool:
        """Whether the peer has answered."""
        return self._answer is not None

    def question(self) -> bytes:
        """Frame to send first, and again after ``take`` as long as nothing is known."""
        return encode_request(_ASKER, _CORRELATION, self._client_id, version=self._asked_version)

    def take(self, payload: bytes) -> None:
        """The peer's answer; a peer that does not know the question's version is asked again.

        Raises:
            NoCommonVersionError: the peer knows the question in no version that we do.
            WireError: the answer is malformed, or answers something else.
        """
        received = _read(payload, self._asked_version)
        answer = received.message
        if received.correlation_id != _CORRELATION or not isinstance(answer, ApiVersionsResponse):
            raise UnsupportedAnswerError(
                f"answer {received.correlation_id} does not fit the question for versions"
            )
        error = error_named(answer.error_code)
        if error is ErrorCode.NONE:
            self._answer = answer
            self._learned(answer)
            return
        if error is not ErrorCode.UNSUPPORTED_VERSION:
            raise UnsupportedAnswerError(f"the peer does not tell versions: {error.name}")
        lower = VersionRange(
            SUPPORTED_VERSIONS[ApiKey.API_VERSIONS].lowest, self._asked_version - 1
        )
        self._asked_version = choose_version(answer, ApiKey.API_VERSIONS, lower)

    def version_for(self, request: msgspec.Struct) -> int:
        """Highest version in which the peer reads what the request says.

        Raises:
            NoCommonVersionError: there is none.
            RuntimeError: the peer has not answered yet.
        """
        api_key = api_key_of(request)
        own = TABLES[api_key].versions
        if isinstance(request, VoteRequest) and request.pre_vote:
            # An older version would make a vote of it.
            own = VersionRange(PRE_VOTE_SINCE, own.highest)
        if self._answer is None:
            raise RuntimeError("the peer has not said yet what it serves")
        chosen = self._chosen.get((api_key, own))
        if chosen is None:
            chosen = self._chosen[api_key, own] = choose_version(self._answer, api_key, own)
        return chosen


# Nodes of one release say the same at every connection.
@lru_cache(_ANSWERS_KEPT_MAX)
def _read(payload: bytes, version: int) -> ReceivedReply:
    return decode_answer(payload, ApiKey.API_VERSIONS, version)
