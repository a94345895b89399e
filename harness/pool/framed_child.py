"""The parent's end of one child process that takes its work, and answers, in frames.

Must never wait for a child that says nothing, nor let one outlive whoever started it.
"""

import atexit
import contextlib
import functools
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import IO, Any

from splitbrain.harness.pool.child_environment import child_environment
from splitbrain.harness.pool.forked_process import ForkedProcess
from splitbrain.harness.pool.frames import frame, taken_messages
from splitbrain.patched.loading import module_words

#: How long a child that has closed its answers gets to end, and so to say how.
_END_PATIENCE_S = 2.0
_READ_BYTES = 1 << 20


class FramedChild:
    """A process that is given its work in frames; its printing goes to a file of its own.

    A fresh interpreter runs ``python -P -m MODULE``; with ``copied`` a copy of this process does
    that instead (``harness.pool.forked_process``). Raises OSError if no process can be started.
    """

    def __init__(
        self, module: str, arguments: Sequence[str] = (), copied: Callable[[], None] | None = None
    ) -> None:
        # Closed with the child, which outlives any one block.
        self._errors: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115
        try:
            process = (
                _fresh(module, arguments, self._errors)
                if copied is None
                else ForkedProcess(copied, self._errors)
            )
        except OSError:
            self._errors.close()
            raise
        assert process.stdin is not None
        assert process.stdout is not None
        self._process, self.output = process, process.stdout
        #: Writable when ``flush`` has something to do and can.
        self.input: IO[bytes] = process.stdin
        # A child that is stopped takes nothing and gives nothing; nobody must wait for it.
        os.set_blocking(self.output.fileno(), False)
        os.set_blocking(self.input.fileno(), False)
        self._unsent = memoryview(b"")
        self._buffer = bytearray()
        #: Whether it has closed its answers.
        self.is_gone = False

    @property
    def process_id(self) -> int:
        """Of the child."""
        return self._process.pid

    @property
    def is_alive(self) -> bool:
        """Whether its process has not ended."""
        return self._process.poll() is None

    @property
    def is_sending(self) -> bool:
        """Whether part of a message is still to be written."""
        return bool(self._unsent)

    def send(self, message: object) -> None:
        """Begin to send a message, after what is still unsent; ``flush`` goes on with it.

        Raises:
            Exception: the message cannot be pickled.
            OSError: the child is gone.
        """
        self.send_frame(frame(message))

    def send_frame(self, content: bytes) -> None:
        """Begin to send a message that is pickled already; raise OSError if the child is gone."""
        self._unsent = memoryview(bytes(self._unsent) + content if self._unsent else content)
        self.flush()

    def flush(self) -> None:
        """Write what the child takes now of what is unsent; raise OSError if it is gone."""
        with contextlib.suppress(BlockingIOError):
            while self._unsent:
                self._unsent = self._unsent[os.write(self.input.fileno(), self._unsent) :]

    def receive(self) -> None:
        """Take what the child has written; sets ``is_gone`` where that was the last of it."""
        with contextlib.suppress(BlockingIOError):
            while chunk := os.read(self.output.fileno(), _READ_BYTES):
                self._buffer += chunk
            self.is_gone = True

    def arrived(self) -> Iterator[Any]:
        """Return the messages received whole, each once; a broken child's may raise anything."""
        return taken_messages(self._buffer)

    def kill(self) -> None:
        """End it whatever it does."""
        self._process.kill()

    def end(self) -> str:
        """How it ended, in a clause without a subject: ``ended with code 9 (its last line)``."""
        try:
            code = self._process.wait(_END_PATIENCE_S)
        except subprocess.TimeoutExpired:
            return "closed its answers without ending"
        self._errors.seek(0)
        lines = self._errors.read().decode("utf-8", "replace").strip().splitlines()
        how = f"was ended by signal {-code}" if code < 0 else f"ended with code {code}"
        return f"{how} ({lines[-1].strip()})" if lines else how

    def close(self) -> None:
        """End the process whatever it does, and wait for its end."""
        self._process.kill()
        self._process.wait()
        self.output.close()
        self._errors.close()
        # Bytes may be left for a child that is gone.
        with contextlib.suppress(OSError):
            self.input.close()


@functools.cache
def _patch_folder() -> Path:
    """Make the folder of this process's patches, which goes with it."""
    folder = Path(tempfile.mkdtemp(prefix="splitbrain-patches-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def _fresh(module: str, arguments: Sequence[str], errors: IO[bytes]) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(
        [sys.executable, "-P", *module_words(module, _patch_folder), *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=errors,
        env=child_environment(),
        # Ctrl-C is for the parent; it decides what becomes of its children.
        start_new_session=True,
    )
