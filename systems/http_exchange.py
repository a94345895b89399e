"""One request and its answer over an open connection: as much of HTTP/1.1 as services need.

Source: RFC 9112. Must never guess where an answer ends.
"""

import asyncio
from typing import Final

import msgspec

_HEADERS_MAX: Final = 200
_BODY_BYTES_MAX: Final = 16 * 1024 * 1024
_CLOSING: Final = "close"


class Answer(msgspec.Struct, frozen=True):
    """An answer to a request."""

    status: int
    body: bytes


async def exchange(
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    method: str,
    path: str,
    body: bytes | None = None,
) -> Answer:
    """Send a request, with a body of JSON if there is one, and return the answer.

    Raises:
        OSError, EOFError: the connection broke, or what came is no answer.
    """
    lines = [f"{method} {path} HTTP/1.1", "Host: node", "Accept: application/json"]
    if body is not None:
        lines += ["Content-Type: application/json", f"Content-Length: {len(body)}"]
    writer.write("\r\n".join([*lines, "", ""]).encode() + (body or b""))
    while True:
        status = await _status(reader)
        headers = await _headers(reader)
        if status >= 200:
            break
    answer = Answer(status, await _body(reader, status, headers))
    if headers.get("connection", "").lower() == _CLOSING:
        # The next operation is told at once that it needs another connection.
        writer.close()
        reader.feed_eof()
    return answer


async def _line(reader: asyncio.StreamReader) -> str:
    try:
        line = await reader.readuntil(b"\r\n")
    except asyncio.LimitOverrunError as error:
        raise EOFError from error
    return line[:-2].decode("latin-1")


async def _status(reader: asyncio.StreamReader) -> int:
    version, _, rest = (await _line(reader)).partition(" ")
    if not version.startswith("HTTP/1.") or not rest[:3].isdigit():
        raise EOFError
    return int(rest[:3])


async def _headers(reader: asyncio.StreamReader) -> dict[str, str]:
    found: dict[str, str] = {}
    for _ in range(_HEADERS_MAX):
        line = await _line(reader)
        if not line:
            return found
        name, _, value = line.partition(":")
        found[name.strip().lower()] = value.strip()
    raise EOFError


async def _body(reader: asyncio.StreamReader, status: int, headers: dict[str, str]) -> bytes:
    if status in (204, 304):
        return b""
    if headers.get("transfer-encoding", "").lower() == "chunked":
        parts: list[bytes] = []
        while size := _number(await _line(reader), base=16):
            parts.append(await reader.readexactly(size))
            await _line(reader)
        await _headers(reader)
        return b"".join(parts)
    if "content-length" in headers:
        return await reader.readexactly(_number(headers["content-length"], base=10))
    return await reader.read(_BODY_BYTES_MAX) if headers.get("connection") == _CLOSING else b""


def _number(text: str, base: int) -> int:
    try:
        number = int(text.partition(";")[0], base)
    except ValueError as error:
        raise EOFError from error
    if not 0 <= number <= _BODY_BYTES_MAX:
        raise EOFError
    return number
