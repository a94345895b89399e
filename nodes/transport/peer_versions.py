"""What one connection's peer serves: asked before the first request, as Kafka's own nodes do.

A peer may be of another release, even another one at each connection, so the answer belongs to the
connection and goes with it. Must never guess: without an answer no version is known.

Source: KIP-511; ``NetworkClient`` of Kafka asks in the same order.
"""

from typing import Final

from splitbrain.nodes.quorum.messages import ErrorCode, Request, VoteRequest
from splitbrain.nodes.wire.api_versions import ApiVersionsAnswer, ApiVersionsRequest, choose_version
from splitbrain.nodes.wire.apis import PRE_VOTE_SINCE, SUPPORTED_VERSIONS, ApiKey, VersionRange
from splitbrain.nodes.wire.errors import UnsupportedAnswerError
from splitbrain.nodes.wire.messages import api_key_of, decode_answer, encode_request

#: Number of the question; the quorum's own requests come after its answer.
_CORRELATION: Final = 0
#: Kafka refuses a request that names neither; it logs them, no more.
_ASKER: Final = ApiVersionsRequest("splitbrain", "1")


class PeerVersions:
    """The question for one connection, and what the answer allows."""

    def __init__(self, client_id: str) -> None:
        """Nothing is known yet; ``client_id`` goes into the question."""
        self._client_id = client_id
        self._asked_version = SUPPORTED_VERSIONS[ApiKey.API_VERSIONS].highest
        self._answer: ApiVersionsAnswer | None = None

    @property
    def is_known(self) -> bool:
        """Whether the peer has answered."""
        return self._answer is not None

    @property
    def answer(self) -> ApiVersionsAnswer | None:
        """What the peer answered; None before."""
        return self._answer

    def question(self) -> bytes:
        """Frame to send first, and again after ``take`` as long as nothing is known."""
        return encode_request(_ASKER, _CORRELATION, self._client_id, version=self._asked_version)

    def take(self, payload: bytes) -> None:
        """The peer's answer; a peer that does not know the question's version is asked again.

        Raises:
            NoCommonVersionError: the peer knows the question in no version that we do.
            WireError: the answer is malformed, or answers something else.
        """
        received = decode_answer(payload, ApiKey.API_VERSIONS, self._asked_version)
        answer = received.message
        if received.correlation_id != _CORRELATION or not isinstance(answer, ApiVersionsAnswer):
            raise UnsupportedAnswerError(
                f"answer {received.correlation_id} does not fit the question for versions"
            )
        if answer.error is ErrorCode.NONE:
            self._answer = answer
            return
        if answer.error is not ErrorCode.UNSUPPORTED_VERSION:
            raise UnsupportedAnswerError(f"the peer does not tell versions: {answer.error.name}")
        lower = VersionRange(
            SUPPORTED_VERSIONS[ApiKey.API_VERSIONS].lowest, self._asked_version - 1
        )
        self._asked_version = choose_version(answer, ApiKey.API_VERSIONS, lower)

    def version_for(self, request: Request) -> int:
        """Highest version in which the peer reads what the request says.

        Raises:
            NoCommonVersionError: there is none.
            RuntimeError: the peer has not answered yet.
        """
        api_key = api_key_of(request)
        own = SUPPORTED_VERSIONS[api_key]
        if isinstance(request, VoteRequest) and request.pre_vote:
            # An older version would make a vote of it.
            own = VersionRange(PRE_VOTE_SINCE, own.highest)
        return self.choose(api_key, own)

    def choose(self, api_key: ApiKey, own: VersionRange) -> int:
        """Highest version of an API that the peer serves and we speak.

        Raises:
            NoCommonVersionError: there is none.
            RuntimeError: the peer has not answered yet.
        """
        if self._answer is None:
            raise RuntimeError("the peer has not said yet what it serves")
        return choose_version(self._answer, api_key, own)
