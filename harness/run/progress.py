"""Present activity of a run, for the display, and the record of its phases.

Threads of the run write here, the display reads. Nothing is decided from it.
"""

import threading
from collections import deque
from collections.abc import Callable

from splitbrain.contracts.errors import HarnessError
from splitbrain.contracts.fault import FaultEvent
from splitbrain.harness.run.run_clock import RunClock
from splitbrain.harness.run.traffic import Traffic
from splitbrain.history.course import Phase, PhaseName
from splitbrain.history.writer import LineWriter

#: Lines of recent events that are kept for the display.
_RECENT_MAX = 8

#: Sentence of each step, and the activity from it on, in the user's words; ``None`` where that goes
#: on as before.
_STEPS: dict[PhaseName, tuple[str, str | None]] = {
    "deploying": ("starting the nodes", "starting the nodes"),
    "deployed": ("nodes started, waiting for a leader", "waiting for a leader"),
    "ready": ("the cluster is ready", "starting the clients"),
    "load-started": ("clients started", "clients at work"),
    "load-ended": ("clients stopped", "clients stopped, healing"),
    "healed": ("all faults healed", "waiting until all nodes agree"),
    "converged": ("all nodes agree", "taking the final reads"),
    "not-converged": ("the nodes did not converge", "stopping the nodes"),
    "final-reads-ended": ("final reads taken", "stopping the nodes"),
    "stopped": ("nodes stopped", "collecting logs and data"),
    "collected": ("logs collected", "removing the nodes"),
    "torn-down": ("nodes removed", "done"),
    "interrupted": ("interrupted: the run ends here", None),
    "stopped-at-violation": ("nodes frozen at a violation", None),
    "failed": ("failed", None),
    "node-exited": ("a node exited by itself", None),
}


class Progress:
    """Phases, faults and leaders of one run as they happen."""

    def __init__(
        self,
        clock: RunClock,
        phases: LineWriter,
        traffic: Traffic,
        *,
        events: Callable[[], int] = lambda: 0,
        failed: Callable[[HarnessError], None] = lambda _error: None,
    ) -> None:
        """``events`` counts the history's events; ``failed`` is told that a step went unrecorded.

        A disk that refuses a line must never keep the run from its next step: healing and taking
        down come after most of them.
        """
        self._clock, self._phases = clock, phases
        self._events, self._failed = events, failed
        self._lock = threading.Lock()
        self._listeners: list[Callable[[str], None]] = []
        self.traffic = traffic
        #: Latest lines, oldest first.
        self.recent: deque[str] = deque(maxlen=_RECENT_MAX)
        #: Name of the present phase.
        self.phase: PhaseName = "deploying"
        #: Present activity, in words.
        self.activity = "starting the nodes"
        #: Nodes whose exit was recorded, and that were not seen running since.
        self.exited: set[str] = set()
        #: Leaders by epoch, as far as known.
        self.leader: str | None = None
        self.epoch: int | None = None
        self._leader_said: tuple[str, int | None] | None = None
        #: Fault in force, in words.
        self.fault: str | None = None

    def reached(
        self,
        phase: PhaseName,
        *,
        node: str | None = None,
        exit_code: int | None = None,
        detail: str | None = None,
        since: int | None = None,
    ) -> None:
        """Record a step of the run; the fields are those of ``history.course.Phase``."""
        line = Phase(self._clock.now(), phase, node, exit_code, detail, self._events(), since)
        try:
            self._phases.append(line)
        except HarnessError as error:
            self._failed(error)
        if phase not in ("node-exited", "interrupted", "stopped-at-violation", "failed"):
            self.phase = phase
        self.activity = _STEPS[phase][1] or self.activity
        if phase == "node-exited" and node is not None:
            self.exited.add(node)
        self.say(phase_sentence(line))

    def fault_event(self, event: FaultEvent) -> None:
        """Show a step of a fault."""
        if event.phase in ("invoked", "verified"):
            self.fault = _fault_words(event)
        elif event.phase in ("removed", "not-healed"):
            self.fault = None
        self.say(fault_sentence(event))

    def led_by(self, leader: str | None, epoch: int | None) -> None:
        """Somebody said who leads; an older epoch than the known one is ignored."""
        with self._lock:
            if epoch is not None and self.epoch is not None and epoch < self.epoch:
                return
            self.leader, self.epoch = leader, epoch
            # Not again after a moment in which nobody answered.
            if leader is None or (leader, epoch) == self._leader_said:
                return
            self._leader_said = (leader, epoch)
        self.say(f"{leader} leads" if epoch is None else f"{leader} leads epoch {epoch}")

    def say(self, line: str) -> None:
        """Show one line."""
        stamped = stamped_line(self._clock.seconds(), line)
        self.recent.append(stamped)
        for listener in self._listeners:
            listener(stamped)

    def listen(self, listener: Callable[[str], None]) -> None:
        """Have ``listener`` told every line from now on, on the thread that says it."""
        self._listeners.append(listener)

    @property
    def elapsed_s(self) -> float:
        """Seconds since the run's start."""
        return self._clock.seconds()


def phase_sentence(phase: Phase) -> str:
    """Return a step of a run in words."""
    sentence, _ = _STEPS[phase.phase]
    if phase.node is not None:
        sentence += f": {phase.node}"
    if phase.exit_code is not None:
        sentence += f", exit code {phase.exit_code}"
    return sentence if phase.detail is None else f"{sentence}: {phase.detail}"


def fault_sentence(event: FaultEvent) -> str:
    """Return a step of a fault in words."""
    evidence = f" ({event.evidence})" if event.evidence else ""
    # An undone fault is called healed everywhere a user looks.
    said = "healed" if event.phase == "removed" else event.phase
    return f"{_fault_words(event)} {said}{evidence}"


def stamped_line(seconds: float, line: str) -> str:
    """Return a line with the time since the run's start before it."""
    return f"{seconds:7.1f} s  {line}"


def _fault_words(event: FaultEvent) -> str:
    fault = f"{event.kind}:{event.target}"
    return f"{fault} on {','.join(event.nodes)}" if event.nodes else fault
