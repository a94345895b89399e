"""Progress of a night: one small file, replaced as a whole after each step.

A night is known by the suite's own name for it. A process that dies between the end of the suite's
night and the line that says so here finds the night again: it is the suite's last one, it has
ended, and it is not the one that was there before.
"""

import fcntl
import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, Literal

import msgspec

from splitbrain.contracts.errors import UNREADABLE, HarnessError
from splitbrain.harness.folder.atomic_file import write_atomically
from splitbrain.harness.folder.refusals import ELSEWHERE, tell_refusal
from splitbrain.history.json_problems import in_words

RECORD_SCHEMA: Final = 1
#: In their order; ``prune`` has no verdict of its own.
STEPS: Final[tuple["Step", ...]] = ("ingest", "analyze", "gate", "prune")
Step = Literal["ingest", "analyze", "gate", "prune"]
#: Next step where a disk refuses.
ROOM_TO_GO_ON: Final = "Make room on that disk; the same command goes on."
#: Record of a night that is over, in its folder.
_ENDED: Final = "nightly.json"


class StepEnded(msgspec.Struct, frozen=True):
    """Outcome of a step."""

    #: As of the command; 2 where its time was up before it had an answer.
    exit_code: int
    took_s: float
    sentence: str | None = None


class NightlyRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One night of a nightly file."""

    schema: int = RECORD_SCHEMA
    digest: str
    #: The suite's last night when this one began; None: it had none.
    before: str | None
    #: The suite's night, once that has ended.
    night: str | None = None
    suite_code: int | None = None
    is_void: bool = False
    steps: dict[Step, StepEnded] = {}
    #: UTC, ISO 8601; None while it is not over.
    ended: str | None = None
    exit_code: int | None = None
    #: Sentence on what became of the webhook; None: nothing was to be sent.
    webhook: str | None = None


class Nights:
    """Folder of all nights of one suite: ``state.json``, and a folder for each that ended."""

    def __init__(self, root: Path) -> None:
        self.root = root
        #: Record of the latest night.
        self.state = root / "state.json"

    def folder(self, night: str) -> Path:
        """Return the folder of a night's answers."""
        return self.root / night

    def read(self) -> NightlyRecord | None:
        """Read the record, None where there is none yet; raise HarnessError if that fails."""
        try:
            return _decoded(self.state)
        except FileNotFoundError:
            return None
        except (OSError, *UNREADABLE) as error:
            raise HarnessError(
                "go on with the night", str(self.state), in_words(error), "Begin anew with --fresh."
            ) from error

    def write(self, record: NightlyRecord) -> None:
        """Replace the record; raise HarnessError if the disk refuses."""
        content = msgspec.json.encode(record)
        with tell_refusal("keep how far the night came", self.state, ROOM_TO_GO_ON):
            self.root.mkdir(parents=True, exist_ok=True)
            write_atomically(self.state, content)
            if record.ended is not None and record.night is not None:
                self.folder(record.night).mkdir(exist_ok=True)
                write_atomically(self.folder(record.night) / _ENDED, content)

    @contextmanager
    def locked(self) -> Generator[None]:
        """Hold the folder; raise HarnessError if another process does, or it cannot be made."""
        with tell_refusal("make the folder of the nights", self.root, ELSEWHERE):
            self.root.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(self.root / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                action, problem = "work on the night", "another process does"
                raise HarnessError(action, str(self.root), problem, "Wait for it.") from error
            yield
        finally:
            os.close(descriptor)


def _decoded(path: Path) -> NightlyRecord:
    return msgspec.json.decode(path.read_bytes(), type=NightlyRecord)
