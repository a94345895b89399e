"""Ctrl-C and SIGTERM: what each of them does, stage by stage, and that none ends in silence.

A stage (the run, the judging) says what the first, second, ... signal that reaches it does; one
more than it knows leaves at once, with a sentence that says what is left to whom: that is safe,
because every line is in its file when it is written. A signal outside of every stage raises
``KeyboardInterrupt``, where nothing has been started yet.

The handler itself only hands the signal to a thread: it may come while the main thread holds any
lock, so it must take none.
"""

import os
import queue
import signal
import sys
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from types import FrameType
from typing import Self, TypeVar

from rich.console import Console

from splitbrain.harness.console.stop import Stop

SIGNALS = (signal.SIGINT, signal.SIGTERM)
#: Exit code of a command that was left before it could tell a verdict: the harness did not finish.
LEFT_EXIT_CODE = 3

#: The last sentence of a process that is left at once, and its exit code.
Farewell = Callable[[], tuple[str, int]]
#: Action of one signal; the sentence that it returns is said, unless it is empty.
Reaction = Callable[[], str]


class Interrupts:
    """Takes the signals of the process while its context lasts; ``leave`` is for tests."""

    def __init__(self, say: Callable[[str], None], leave: Callable[[int], None] = os._exit) -> None:
        self._say = say
        self._leave = leave
        self._arrived: queue.SimpleQueue[bool] = queue.SimpleQueue()
        #: Reactions that are left of each stage, and its farewell.
        self._stages: list[tuple[list[Reaction], Farewell]] = []
        self._thread = threading.Thread(target=self._react, name="interrupts", daemon=True)
        self._before: dict[signal.Signals, object] = {}

    def __enter__(self) -> Self:
        # Only the main thread may have handlers; elsewhere the caller owns the process.
        if threading.current_thread() is threading.main_thread():
            self._before = {number: signal.signal(number, self._on_signal) for number in SIGNALS}
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)  # type: ignore[arg-type]
        self._arrived.put(False)
        self._thread.join()

    @contextmanager
    def during(self, *reactions: Reaction, farewell: Farewell) -> Generator[None]:
        """Have the first signal do the first of this, and so on, while the context lasts.

        One more brings the terminal back in order, and says the process' last word.
        """
        stage = (list(reactions), farewell)
        self._stages.append(stage)
        try:
            yield
        finally:
            self._stages.remove(stage)

    def _on_signal(self, _number: int, _frame: FrameType | None) -> None:
        if not self._stages:
            raise KeyboardInterrupt
        self._arrived.put(True)

    def _react(self) -> None:
        while self._arrived.get():
            # The stage may have ended while the signal was on its way; the next one has it then.
            stages = self._stages[-1:]
            if not stages:
                continue
            left, farewell = stages[0]
            if left:
                if sentence := left.pop(0)():
                    self._say(sentence)
                continue
            sentence, code = farewell()
            sys.stderr.write(f"splitbrain: {sentence}\n")
            sys.stderr.flush()
            self._leave(code)


InterruptsT = TypeVar("InterruptsT", bound=Interrupts)


@contextmanager
def stopped_in_order(
    stop: Stop,
    *,
    left: str,
    sentence: str = "",
    leave: Callable[[int], None] | None = None,
    kind: type[InterruptsT] = Interrupts,
) -> Generator[InterruptsT]:
    """Have the first signal set ``stop`` and the second leave, while the context lasts.

    ``sentence`` is said at the first, ``left`` is the last word of a process that was left.
    """
    errors = Console(stderr=True, soft_wrap=True, highlight=False, markup=False)
    interrupts = kind(errors.print, leave or os._exit)

    def interrupt() -> str:
        stop.interrupt()
        return sentence

    with interrupts, interrupts.during(interrupt, farewell=lambda: (left, LEFT_EXIT_CODE)):
        yield interrupts
