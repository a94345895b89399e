"""Fault kinds that end, freeze or starve processes.

A killed node loses its memory but neither its disk nor the kernel's page cache, so no kind here can
show a missing fsync. A frozen node loses nothing and wakes up with its old beliefs.
"""

from typing import Any, Final

from splitbrain.contracts.fault import US_PER_MS, FaultTraits
from splitbrain.contracts.names import NodeName
from splitbrain.nemesis.acts import (
    Act,
    Kill,
    LimitMemory,
    Pause,
    Resume,
    Start,
    Terminate,
    Throttle,
    UnlimitMemory,
    Unthrottle,
)
from splitbrain.nemesis.expectations import (
    Expectation,
    MemoryFree,
    MemoryPressed,
    NodeAnswers,
    NodeIs,
    NodeIsSilent,
    ProcessorShare,
)
from splitbrain.nemesis.fault_kind import (
    AT_ONCE,
    LATER,
    UNTIL_STARTED,
    Course,
    FaultKind,
    Setting,
    Step,
)
from splitbrain.nemesis.fault_options import (
    CpuOptions,
    CrashLoopOptions,
    MemoryOptions,
    NoOptions,
    TerminateOptions,
)
from splitbrain.nemesis.targets import ALL, FOLLOWER, HALVES, random_target

PAGE: Final = "processes"
_NO_HALVES: Final = frozenset({HALVES})


def exited(nodes: tuple[NodeName, ...]) -> tuple[Expectation, ...]:
    """Return the expectations that the runtime reports the nodes exited."""
    return tuple(NodeIs(node, "exited") for node in nodes)


def running(nodes: tuple[NodeName, ...]) -> tuple[Expectation, ...]:
    """Return the expectations that the runtime reports the nodes running."""
    return tuple(NodeIs(node, "running") for node in nodes)


def answering(nodes: tuple[NodeName, ...]) -> tuple[Expectation, ...]:
    """Return the expectations that the nodes' programs answer."""
    return tuple(NodeAnswers(node, answers=True) for node in nodes)


def until_healed(
    hit: tuple[NodeName, ...],
    *steps: Step,
    heal: tuple[Act, ...],
    healed: tuple[Expectation, ...] = (),
) -> Course:
    """Return a course that, once healed, leaves its nodes running and answering."""
    healed = (*healed, *running(hit))
    return Course(steps=steps, heal=heal, healed=healed, resumed=answering(hit))


def until_started(hit: tuple[NodeName, ...], *steps: Step) -> Course:
    """Return a course that ends processes; its heal starts them again."""
    return until_healed(hit, *steps, heal=(Start(hit),))


def _kill(setting: Setting, _options: NoOptions) -> Course:
    return until_started(setting.hit, Step((Kill(setting.hit),), seen=exited(setting.hit)))


def _terminate(setting: Setting, options: TerminateOptions) -> Course:
    ending = Terminate(setting.hit, options.patience_ms / 1000)
    return until_started(setting.hit, Step((ending,), seen=exited(setting.hit)))


def _restart(setting: Setting, options: TerminateOptions) -> Course:
    """Start at once: the rest of the fault's time is for recovery."""
    hit = setting.hit
    return until_started(
        hit,
        Step((Terminate(hit, options.patience_ms / 1000),), seen=exited(hit)),
        Step((Start(hit),), US_PER_MS, seen=running(hit)),
    )


def _pause(setting: Setting, _options: NoOptions) -> Course:
    hit = setting.hit
    seen = (
        *(NodeIs(node, "paused") for node in hit),
        *(NodeIsSilent(node) for node in hit),
        *(NodeAnswers(node, answers=False) for node in hit),
    )
    return until_healed(hit, Step((Pause(hit),), seen=seen), heal=(Resume(hit),))


def _rolling_restart(setting: Setting, options: TerminateOptions) -> Course:
    """Restart the leader last, and each node only when the one before is back."""
    order = sorted(setting.hit, key=lambda node: node == setting.leader)
    slot_ms = max(2, setting.duration_ms // max(1, len(order)))
    steps: list[Step] = []
    for number, node in enumerate(order):
        target = (node,)
        begin_ms, back_ms = number * slot_ms, number * slot_ms + slot_ms // 3
        ending = Terminate(target, options.patience_ms / 1000)
        steps.append(Step((ending,), begin_ms * US_PER_MS, seen=exited(target)))
        steps.append(Step((Start(target),), back_ms * US_PER_MS, seen=running(target)))
    return until_started(setting.hit, *steps)


def _crash_loop(setting: Setting, options: CrashLoopOptions) -> Course:
    """Kill again right after each start, so that recovery itself is interrupted."""
    hit = setting.hit
    slot_ms = max(2, setting.duration_ms // options.count)
    slot_us, half_us = slot_ms * US_PER_MS, slot_ms // 2 * US_PER_MS
    steps = [Step((Kill(hit),), seen=exited(hit))]
    for number in range(1, options.count):
        steps.append(Step((Start(hit),), number * slot_us - half_us, seen=running(hit)))
        steps.append(Step((Kill(hit),), number * slot_us, seen=exited(hit)))
    return until_started(hit, *steps)


def _throttle(setting: Setting, options: CpuOptions) -> Course:
    hit = setting.hit
    seen = tuple(ProcessorShare(node, options.cpu_share) for node in hit)
    free = tuple(ProcessorShare(node, None) for node in hit)
    throttled = Step((Throttle(hit, options.cpu_share),), seen=seen)
    return until_healed(hit, throttled, heal=(Unthrottle(hit),), healed=free)


def _limit_memory(setting: Setting, options: MemoryOptions) -> Course:
    """Limit memory; the kernel may kill the node, also after its restart, so the heal starts it."""
    hit = setting.hit
    pressed = tuple(MemoryPressed(node, may_be_killed=True) for node in hit)
    by_the_kernel = tuple(MemoryPressed(node) for node in hit)
    back_us = max(1, setting.duration_ms // 3) * US_PER_MS
    return until_healed(
        hit,
        Step((LimitMemory(hit, options.limit_mib),), seen=pressed),
        Step((Start(hit),), back_us, seen=by_the_kernel, awaits_start=True),
        heal=(UnlimitMemory(hit), Start(hit)),
        healed=tuple(MemoryFree(node) for node in hit),
    )


def _kind(name: str, summary: str, **fields: Any) -> FaultKind:
    usual: dict[str, Any] = {"page": PAGE, "refused_targets": _NO_HALVES}
    return FaultKind(name=name, summary=summary, **(usual | fields))


KINDS: Final = (
    _kind(
        "kill", "Ends the target's processes at once (SIGKILL) and starts them again when healed.",
        needs=frozenset({"kill"}), course=_kill, traits=UNTIL_STARTED,
        reveals=(
            "What was acknowledged must be there after the process is gone. Memory that was taken "
            "for durable shows here, though not a missing fsync: the kernel keeps its pages."
        ),
        picture=(
            "client -- write 4 -->  n1     <-- done --\n"
            "n1     SIGKILL            memory is gone, the kernel writes its pages\n"
            "n1     starts: write 4 must be there"
        ),
    ),
    _kind(
        "terminate", "Asks the target to end (SIGTERM) and starts it again when healed.",
        needs=frozenset({"terminate"}), course=_terminate, options=TerminateOptions,
        traits=UNTIL_STARTED,
        reveals=(
            "A clean stop takes other paths than a crash: handing over the lead, draining "
            "requests, notes on the disk. An answer that is given on the way out may promise too "
            "much."
        ),
        picture=(
            "n1 (leader)  SIGTERM: answers what it still can, hands over, ends\n"
            "             an answer here promises what nobody else may have"
        ),
    ),
    _kind(
        "restart", "Asks the target to end (SIGTERM) and starts it at once.",
        needs=frozenset({"terminate"}), course=_restart, options=TerminateOptions,
        traits=AT_ONCE,
        reveals=(
            "The node is back before others have noticed that it was away, with a new process and "
            "old connections and requests around it."
        ),
        picture=(
            "n2   SIGTERM | starts at once\n"
            "n1   has not noticed: sends to the life before, hears the new one"
        ),
    ),
    _kind(
        "pause", "Freezes every process of the target; it wakes up believing what it believed.",
        needs=frozenset({"pause"}), course=_pause, is_silent=True,
        traits=FaultTraits(silences="nodes"),
        reveals=(
            "The target wakes up seconds later and believes that it still leads, as after a long "
            "garbage collection or a moved virtual machine. What it answers then is stale unless "
            "it asks first."
        ),
        picture=(
            "n1  leads epoch 1 | frozen ............. | answers a read as if nothing was\n"
            "n2                |   leads epoch 2, acknowledges writes"
        ),
    ),
    _kind(
        "rolling-restart", "Restarts the target's nodes one after the other, the leader last.",
        needs=frozenset({"terminate"}), course=_rolling_restart, options=TerminateOptions,
        first_target=ALL, other_targets=(ALL,), traits=LATER,
        reveals=(
            "It is what every upgrade does. Each node must have caught up before the next one "
            "goes, or the last majority that holds a record goes with it."
        ),
        picture=(
            "n2   down, up, catches up\n"
            "n3                          down, up, catches up\n"
            "n1   leads ...                                     down, up"
        ),
    ),
    _kind(
        "crash-loop", "Kills the target again as soon as it has come back, several times.",
        needs=frozenset({"kill"}), course=_crash_loop, options=CrashLoopOptions,
        traits=AT_ONCE,
        reveals=(
            "Recovery itself is interrupted. What it removes, truncates or rewrites half must "
            "still be right when the next recovery begins."
        ),
        picture=(
            "n2   kill | starts, recovers, kill | starts, recovers, kill | starts\n"
            "              half a truncation        half of that again"
        ),
    ),
    _kind(
        "cpu", "Lets the target have a small share of one processor.",
        needs=frozenset({"cpu"}), course=_throttle, options=CpuOptions,
        other_targets=(FOLLOWER, random_target(1), ALL),
        reveals=(
            "A node that is slow, not dead: it answers after others have given it up, and its "
            "timers fire late."
        ),
        picture=(
            "n1   | works |               | works |               | works |\n"
            'n2   "n1 gave no answer": elects itself; n1 answers now'
        ),
    ),
    _kind(
        "memory", "Lets the target have little memory; what needs more is killed by the kernel.",
        needs=frozenset({"memory"}), course=_limit_memory, options=MemoryOptions,
        traits=FaultTraits(reasons=("memory",), starves=True), exclusive="memory",
        reveals=(
            "The kernel kills a process in the midst of anything, again after its restart, or "
            "lets it crawl. Nothing may be half done then."
        ),
        picture=(
            "n2   grows ... limit: killed by the kernel | starts, grows ... killed\n"
            "     in the midst of anything, with nothing said in its log"
        ),
    ),
)  # fmt: skip
