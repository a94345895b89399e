"""A socket between a client and the engine that a test can cut, as if the engine had gone."""

import socket
import threading
from pathlib import Path
from types import TracebackType
from typing import Self

_ENGINE = "/var/run/docker.sock"
_CHUNK_BYTES = 65_536


class EngineRelay:
    """Passes bytes between ``path`` and the engine until it is cut; can be mended.

    Args:
        path: of the socket; short enough for the kernel (107 bytes).
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._listener: socket.socket | None = None
        self._open: set[socket.socket] = set()
        self._threads: list[threading.Thread] = []
        #: Pods are made side by side, and each of their threads may cut.
        self._cutting = threading.Lock()

    @property
    def host(self) -> str:
        """For ``DOCKER_HOST``."""
        return f"unix://{self._path}"

    def mend(self) -> None:
        """Listen, and pass everything on."""
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listener.bind(str(self._path))
        self._listener.listen(64)
        self._acceptor = self._start(self._accept, self._listener)

    def cut(self) -> None:
        """End every connection, and take no new one."""
        with self._cutting:
            if self._listener is None:
                return
            # A thread that waits in accept is woken by the shutdown, not by the close.
            self._listener.shutdown(socket.SHUT_RDWR)
            # Until it has ended it may still add a connection that it has just taken.
            self._acceptor.join()
            self._listener.close()
            self._listener = None
            self._path.unlink()
            for end in self._open:
                _shut(end)
            for thread in self._threads:
                thread.join()
            self._threads.clear()
            for end in self._open:
                end.close()
            self._open.clear()

    def __enter__(self) -> Self:
        self.mend()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.cut()

    def _start(self, target: object, *arguments: object) -> threading.Thread:
        thread = threading.Thread(target=target, args=arguments, daemon=True)  # type: ignore[arg-type]
        self._threads.append(thread)
        thread.start()
        return thread

    def _accept(self, listener: socket.socket) -> None:
        while True:
            try:
                near, _ = listener.accept()
            except OSError:
                return
            far = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            far.connect(_ENGINE)
            self._open |= {near, far}
            self._start(self._pass_on, near, far)
            self._start(self._pass_on, far, near)

    def _pass_on(self, source: socket.socket, target: socket.socket) -> None:
        try:
            while chunk := source.recv(_CHUNK_BYTES):
                target.sendall(chunk)
            target.shutdown(socket.SHUT_WR)
        except OSError:
            _shut(target)


def _shut(end: socket.socket) -> None:
    try:
        end.shutdown(socket.SHUT_RDWR)
    except OSError:
        return
