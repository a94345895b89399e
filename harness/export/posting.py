"""JSON sent to a server over HTTP, with retries; an address may be a secret, so no sentence has it.

A redirect is not followed: a POST would become a GET, and the body could go to another host.
"""

import http.client
import socket
import threading
import urllib.error
import urllib.request
from collections.abc import Mapping
from typing import Final, cast
from urllib.parse import urlsplit

import msgspec
import tenacity

_ANSWER_BYTES_MAX: Final = 1 << 16
_TOO_MANY: Final = 429
_PASSING: Final = (408, _TOO_MANY, 500, 502, 503, 504)
_REDIRECTS: Final = range(300, 400)


class Patience(msgspec.Struct, frozen=True):
    """Limits of one message's retries."""

    attempts: int = 4
    #: For a whole answer, seconds.
    answer_s: float = 10.0
    #: Before the second attempt; doubled before each further one.
    pause_s: float = 1.0
    #: Also where the server asks for a longer one.
    pause_max_s: float = 30.0


class PostFailedError(Exception):
    """The server did not take it; the text is a clause that begins with "it"."""

    def __init__(
        self, problem: str, *, is_passing: bool = False, retry_after_s: float | None = None
    ) -> None:
        super().__init__(problem)
        #: Whether it may go well another time.
        self.is_passing = is_passing
        self.retry_after_s = retry_after_s


def problem_of_address(address: str) -> str | None:
    """Return why nothing can be posted to an address, a clause; None: it is one."""
    try:
        parts = urlsplit(address)
        has_host, _ = bool(parts.hostname), parts.port
    except ValueError:
        return "is not an address"
    if parts.scheme not in ("http", "https") or not has_host:
        return "is not an address that begins with http:// or https://"
    is_plain = address.isascii() and address.isprintable() and " " not in address
    return None if is_plain else "holds a character that no address has"


def post_json(
    address: str,
    content: bytes,
    *,
    headers: Mapping[str, str] = {},
    patience: Patience = Patience(),  # noqa: B008 - frozen
) -> bytes:
    """Post JSON and return the answer's first 64 KiB.

    Raises:
        PostFailedError: it was not taken, after all attempts.
    """
    if (problem := problem_of_address(address)) is not None:
        raise PostFailedError(f"it {problem}")
    request = urllib.request.Request(  # noqa: S310 - its scheme was looked at
        address, content, {"Content-Type": "application/json", **headers}, method="POST"
    )
    usual = tenacity.wait_exponential(patience.pause_s, patience.pause_max_s)

    def pause(state: tenacity.RetryCallState) -> float:
        error = state.outcome.exception() if state.outcome else None
        asked = error.retry_after_s if isinstance(error, PostFailedError) else None
        return usual(state) if asked is None else min(asked, patience.pause_max_s)

    retrying = tenacity.Retrying(
        stop=tenacity.stop_after_attempt(patience.attempts),
        wait=pause,
        retry=tenacity.retry_if_exception(
            lambda error: isinstance(error, PostFailedError) and error.is_passing
        ),
        reraise=True,
    )
    return retrying(_attempt, request, patience.answer_s)


def _attempt(request: urllib.request.Request, answer_s: float) -> bytes:
    """Ask once; a server that sends a byte now and then resets the socket's own time limit."""
    outcome: list[bytes | PostFailedError] = []

    def ask() -> None:
        try:
            outcome.append(_answer(request, answer_s))
        except PostFailedError as error:
            outcome.append(error)

    thread = threading.Thread(target=ask, daemon=True)
    thread.start()
    thread.join(answer_s)
    if not outcome:
        raise PostFailedError(f"it did not answer within {answer_s:g} s", is_passing=True)
    if isinstance(outcome[0], PostFailedError):
        raise outcome[0]
    return outcome[0]


def _opener() -> urllib.request.OpenerDirector:
    """Return the usual one without its way to files, and without following redirects."""
    opener = urllib.request.OpenerDirector()
    for handler in (
        urllib.request.ProxyHandler(),
        urllib.request.HTTPHandler(),
        urllib.request.HTTPSHandler(),
        urllib.request.HTTPDefaultErrorHandler(),
        urllib.request.HTTPErrorProcessor(),
    ):
        opener.add_handler(handler)
    return opener


def _answer(request: urllib.request.Request, answer_s: float) -> bytes:
    try:
        with _opener().open(request, timeout=answer_s) as answer:
            return cast("bytes", answer.read(_ANSWER_BYTES_MAX))
    except urllib.error.HTTPError as error:
        with error:
            raise _refusal(error) from None
    # The texts of these errors may hold the address.
    except (OSError, http.client.HTTPException, ValueError) as error:
        reason = error.reason if isinstance(error, urllib.error.URLError) else error
        problem = _PROBLEMS.get(type(reason), f"it cannot be reached ({type(reason).__name__})")
        raise PostFailedError(problem, is_passing=isinstance(error, OSError)) from None


_PROBLEMS: Final[dict[type, str]] = {
    ConnectionRefusedError: "it refuses connections",
    ConnectionResetError: "it closed the connection without an answer",
    http.client.BadStatusLine: "it does not answer in HTTP",
    http.client.RemoteDisconnected: "it closed the connection without an answer",
    socket.gaierror: "the name of its host cannot be resolved",
    TimeoutError: "it did not answer in time",
}


def _refusal(error: urllib.error.HTTPError) -> PostFailedError:
    if error.code in _REDIRECTS:
        redirect = f"it answered {error.code}, a redirect, which is not followed"
        return PostFailedError(f"{redirect}: use the address that it leads to")
    # A date is as good as nothing said.
    after = error.headers.get("Retry-After", "")
    return PostFailedError(
        f"it answered {error.code}",
        is_passing=error.code in _PASSING,
        retry_after_s=float(after) if after.isascii() and after.isdigit() else None,
    )
