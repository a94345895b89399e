"""Asks running members for digests of their states, and writes each answer to ``digests.jsonl``.

Once a second on a thread of its own, and a last time after the final reads, until all that run
stand at one position; meanwhile a system is let move on for those that have noted none. Of a system
that keeps earlier states, those that are ahead are asked again for their state at the lowest
position. Compares nothing: the checker does.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Final

import msgspec

from splitbrain.contracts.errors import AdapterError, in_one_line
from splitbrain.contracts.member_digest import DigestAnswer, MemberDigest
from splitbrain.contracts.names import NodeName
from splitbrain.contracts.runtime import Runtime
from splitbrain.contracts.system import System
from splitbrain.harness.console.stop import Stop
from splitbrain.harness.run.onlooker import Onlooker
from splitbrain.harness.run.run_clock import RunClock
from splitbrain.history.writer import LineWriter
from splitbrain.systems.questions import ask_all

INTERVAL_S: Final = 1.0
#: How long a member gets to answer; within the interval, so that silent ones cost no second.
ANSWER_TIMEOUT_S: Final = 0.5
#: Between two rounds while the members are waited for.
_LAST_INTERVAL_S: Final = 0.1
#: How long the end of the watch waits for a round that is under way.
_END_PATIENCE_S: Final = 4 * ANSWER_TIMEOUT_S

_Answers = Mapping[NodeName, DigestAnswer]


class DigestWatch(Onlooker):
    """Asks from ``start`` to ``finish``; ``ask_last`` in between ends the rounds."""

    def __init__(
        self,
        system: System,
        runtime: Runtime,
        clock: RunClock,
        lines: LineWriter,
        stop: Stop,
        interval_s: float = INTERVAL_S,
    ) -> None:
        super().__init__("digests", clock, stop, interval_s, _END_PATIENCE_S)
        self._system, self._runtime, self._lines = system, runtime, lines
        self._standstill: str | None = None
        self._keeps_past = type(system).digest_at is not System.digest_at

    def ask_last(self, patience_s: float) -> None:
        """Ask until all that run stand at one position, or patience or the user's ends.

        Raises:
            HarnessError: the disk refuses.
        """
        self.finish()
        give_up_s = self._clock.seconds() + patience_s
        while True:
            answers = self._round()
            is_over = _stand_at_one(answers) or self._clock.seconds() >= give_up_s
            if is_over or self._stop.haste.is_set():
                self._write(answers, final=True)
                return
            self._write(answers)
            if any(answer.told is None for answer in answers.values()):
                self._provoke()
            self._stop.haste.wait(_LAST_INTERVAL_S)

    def look(self) -> Callable[[], None]:
        """Ask every member that runs."""
        return partial(self._write, self._round())

    def _round(self) -> _Answers:
        """Return the last answer of each member that runs."""
        answers = ask_all(self._runtime.nodes(), self._ask)
        if not self._keeps_past:
            return answers
        told = {node: answer.told for node, answer in answers.items() if answer.told}
        lowest: dict[str, int] = {}
        for state in told.values():
            lowest[state.scope] = min(state.position, lowest.get(state.scope, state.position))
        ahead = [node for node, state in told.items() if state.position > lowest[state.scope]]
        again = ask_all(ahead, lambda node: self._ask(node, lowest[told[node].scope]))
        return {**answers, **{node: answer for node, answer in again.items() if answer.told}}

    def _ask(self, node: NodeName, position: int | None = None) -> DigestAnswer | None:
        """Ask one member for its state now, or at an earlier position; None: it does not run."""
        system, runtime, told, problem = self._system, self._runtime, None, None
        try:
            if runtime.status(node) != "running":
                return None
            if position is None:
                told = _checked(lambda: system.digest(runtime, node, ANSWER_TIMEOUT_S))
            else:
                told = _checked(lambda: system.digest_at(runtime, node, position, ANSWER_TIMEOUT_S))
        except AdapterError:
            raise
        except Exception as error:  # noqa: BLE001 - an onlooker, whose checker tells what is lacking
            problem = in_one_line(error)
        if told is None:
            problem = problem or self._standstill
        return DigestAnswer(self._clock.now(), node, told, problem=problem)

    def _provoke(self) -> None:
        """Let the system move on; why it cannot is told with the answers of who stays silent."""
        try:
            self._system.provoke_digests(self._runtime, ANSWER_TIMEOUT_S)
        except AdapterError:
            raise
        except Exception as error:  # noqa: BLE001 - as of an answer
            self._standstill = in_one_line(error)

    def _write(self, answers: _Answers, *, final: bool = False) -> None:
        for _, answer in sorted(answers.items()):
            self._lines.append(msgspec.structs.replace(answer, final=final))


def _checked(ask: Callable[[], object]) -> MemberDigest | None:
    """Return the adapter's answer, which must be one by its types too: the record is kept."""
    answer = ask()
    if answer is not None and not isinstance(answer, MemberDigest):
        message = f"{answer!r} is no MemberDigest"
        raise TypeError(message)
    return msgspec.convert(msgspec.to_builtins(answer), MemberDigest | None)


def _stand_at_one(answers: _Answers) -> bool:
    told = [answer.told for answer in answers.values()]
    places = {state and (state.scope, state.position) for state in told}
    return len(places) == 1 and None not in places
