"""Acts of a node that a fault may wait for, by name.

The moments that matter last microseconds, so the clock alone rarely hits them. Each is told after
the effect was performed, before the next one.
"""

from collections.abc import Callable
from typing import Any, Final

from splitbrain.nodes.quorum import effects
from splitbrain.nodes.quorum.events import LogFlushed, QuorumStatePersisted, Started
from splitbrain.nodes.quorum.messages import FetchRequest, VoteAnswer, VoteRequest
from splitbrain.nodes.quorum.replica import Replica


def _answered(effect: effects.SendAnswer, _: Replica) -> str | None:
    return "votes" if isinstance(effect.answer, VoteAnswer) and effect.answer.granted else None


def _sent(effect: effects.SendRequest, _: Replica) -> str | None:
    if isinstance(effect.request, VoteRequest):
        return "asks-for-votes"
    return "fetches" if isinstance(effect.request, FetchRequest) else None


def _reported(effect: effects.ReportState, _: Replica) -> str | None:
    if effect.kind != "role":
        return None
    return "leads" if effect.role == "leader" else "changes-role"


def _flushed(_: LogFlushed, replica: Replica) -> str | None:
    return "leader-flushes" if replica.role == "leader" else "follower-flushes"


def _appended(_: object, replica: Replica) -> str | None:
    return "leader-appends" if replica.role == "leader" else "follower-appends"


def _advanced(_: effects.AdvanceHighWatermark, replica: Replica) -> str | None:
    return "commits" if replica.role == "leader" else "learns-commit"


#: How to name what a node has just done, or is just told; None: nobody waits for that.
NAMES: Final[dict[type, Callable[[Any, Replica], str | None]]] = {
    effects.PersistQuorumState: lambda _effect, _replica: "persists",
    QuorumStatePersisted: lambda _event, _replica: "persisted",
    effects.AppendLeaderChange: lambda _effect, _replica: "opens-epoch",
    effects.AppendRecords: _appended,
    effects.AppendBatches: _appended,
    effects.TruncateLog: lambda _effect, _replica: "truncates",
    LogFlushed: _flushed,
    effects.AdvanceHighWatermark: _advanced,
    effects.SendAnswer: _answered,
    effects.SendRequest: _sent,
    effects.AnswerFetch: lambda _effect, _replica: "answers-fetch",
    effects.ReportState: _reported,
    Started: lambda _event, _replica: "starts",
}

#: A broker sets out to propose an ISR. Not among those that worlds of registers draw.
PROPOSES_ISR: Final = "proposes-isr"
#: All others.
HAPPENINGS: Final = (
    "persists", "persisted", "opens-epoch", "leader-appends", "follower-appends", "truncates",
    "leader-flushes", "follower-flushes", "commits", "learns-commit", "votes", "asks-for-votes",
    "fetches", "answers-fetch", "leads", "changes-role", "starts",
    # Told by the disk: a job of this name is under way.
    "disk-persist", "disk-flush", "disk-truncate", "disk-mark",
    # Once more: what is listed more often is drawn more often.
    "disk-persist", "disk-persist", "disk-flush", "disk-truncate", "disk-truncate", "truncates",
    "truncates", "commits", "commits", "leads", "leads", "leads", "leads", "opens-epoch", "votes",
    "leader-flushes", "starts",
)  # fmt: skip
