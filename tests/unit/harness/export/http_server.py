"""A server on 127.0.0.1 that notes what is posted to it and answers as a test says."""

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Thread
from typing import Any

import msgspec

from splitbrain.harness.export.posting import Patience

#: Tests wait for nothing that they need not wait for.
HASTY = Patience(attempts=3, answer_s=10.0, pause_s=0.0, pause_max_s=0.0)


class Posted(msgspec.Struct, frozen=True):
    """One message that came in."""

    path: str
    #: By their names in small letters.
    headers: dict[str, str]
    body: bytes

    @property
    def data(self) -> Any:
        return msgspec.json.decode(self.body)


class Answer(msgspec.Struct, frozen=True):
    """One answer; of a silent one the connection is held until the test is over."""

    code: int = 200
    headers: Mapping[str, str] = {}
    body: bytes = b"{}"
    #: Sent byte by byte, one after each of these pauses, in the place of all else.
    drips_s: float | None = None
    is_silent: bool = False


class Server:
    """The server: what came in, and where it listens."""

    def __init__(self, answers: Callable[[int], Answer]) -> None:
        self.posted: list[Posted] = []
        self.over = Event()
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                headers = {name.lower(): value for name, value in self.headers.items()}
                server.posted.append(Posted(self.path, headers, body))
                answer = answers(len(server.posted) - 1)
                if answer.is_silent:
                    server.over.wait()
                    return
                if answer.drips_s is not None:
                    while not server.over.wait(answer.drips_s):
                        self.wfile.write(b"H")
                    return
                self.send_response(answer.code)
                for name, value in {**answer.headers, "Content-Length": len(answer.body)}.items():
                    self.send_header(name, str(value))
                self.end_headers()
                self.wfile.write(answer.body)

            def log_message(self, *_: object) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
                """Say nothing."""

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._http.handle_error = lambda *_: None  # pyright: ignore[reportAttributeAccessIssue]
        self.address = f"http://127.0.0.1:{self._http.server_port}"

    @contextmanager
    def running(self) -> Generator["Server"]:
        thread = Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield self
        finally:
            self.over.set()
            self._http.shutdown()
            thread.join()
            self._http.server_close()


def answering(*answers: Answer) -> Server:
    """A server that gives these answers in turn, the last one for good."""
    given: Sequence[Answer] = answers or (Answer(),)
    return Server(lambda place: given[min(place, len(given) - 1)])
