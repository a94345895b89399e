"""How invariants speak of what they have seen: states, records and values in words.

A violation's sentence is read by people who do not know our classes, in the terminal and in the
report. Must never show the source text of an object.
"""

import re
from typing import Any, Final

import msgspec

from splitbrain.nodes.quorum.persistent import QuorumState
from splitbrain.nodes.registers.commands import UnknownCommandError, command_fields, decode_command
from splitbrain.nodes.server.host.exit_codes import HALTED
from splitbrain.simulation.kraft.mirrored_log import Entry

#: Of a sentence: what differs between two ends that have the same cause.
_CHANGING: Final = re.compile(r"/\S+|\b0x[0-9a-f]+|(?<!INV-)(?<![\w-])n?-?\d+\b")
#: So much is shown of a record that is no command.
_SHOWN_BYTES: Final = 16
_US_PER_MS: Final = 1_000
_HALTED: Final = f"exit code {HALTED}: "
#: Words of a reason after which its details begin.
_DETAILS: Final = re.compile(r" at byte | \(log offset |; |: '")


def state_in_words(state: QuorumState | None) -> str:
    """Return a quorum state in words."""
    if state is None:
        return "a quorum state that cannot be read"
    vote = "no vote" if state.voted_id is None else f"a vote for n{state.voted_id}"
    leader = "" if state.leader_id is None else f" led by n{state.leader_id}"
    return f"epoch {state.epoch}{leader}, with {vote}"


def moment_in_words(time_us: int) -> str:
    """Return when something happened, as the moment of a violation is told."""
    return f"{time_us / _US_PER_MS:,.1f} ms into the run"


def record_in_words(entry: Entry | None) -> str:
    """One record of a log."""
    if entry is None:
        return "nothing"
    return f"{_payload_in_words(entry.payload)} of epoch {entry.epoch}"


def value_in_words(value: Any) -> str:
    """Return an answer to a client in words."""
    return "nothing" if value is None else msgspec.json.encode(value).decode()


def class_of_end(reason: str) -> str:
    """Return the part that two ends of a node for one reason share: no number, no name.

    Args:
        reason: as ``Host.ended`` says it, or why a replica halts.
    """
    if reason.startswith("exit code ") and not reason.startswith(_HALTED):
        return reason.partition(":")[0]
    clause = _DETAILS.split(reason.removeprefix(_HALTED))[0]
    return _CHANGING.sub("#", clause)


def _payload_in_words(payload: bytes | None) -> str:
    if payload is None:
        return "raft's own record"
    try:
        command = decode_command(payload)
    except UnknownCommandError:
        more = ", ..." if len(payload) > _SHOWN_BYTES else ""
        shown = payload[:_SHOWN_BYTES].hex(" ")
        return f"a record that is no command ({len(payload)} bytes: {shown}{more})"
    kind, key, value = command_fields(command)
    shown = value_in_words(value)
    return f"the {kind} of {shown} to {key} ({command.operation})"
