"""Stand-ins for a container engine: a socket on which something answers that is none."""

import socket
import threading
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

#: Answer of a web server that is no engine.
GARBAGE = b"HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\n<html>\n"


@contextmanager
def false_engine(path: Path, answer: bytes | None) -> Generator[str]:
    """A listener on a Unix socket; gives what DOCKER_HOST has to be.

    Args:
        path: of the socket.
        answer: what every request gets; None: no answer ever; empty: the line goes dead.
    """
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(path))
    listener.listen()
    open_ends: list[socket.socket] = []

    def serve() -> None:
        with suppress(OSError):
            while True:
                end, _ = listener.accept()
                open_ends.append(end)
                # A client that only knocks has closed its end before it is answered.
                if answer is not None and end.recv(65_536):
                    end.sendall(answer)
                if answer is not None:
                    end.close()

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield f"unix://{path}"
    finally:
        # Closing alone does not wake who waits in accept.
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join()
        for end in open_ends:
            end.close()
