"""Columns of events, and their pairing to operations; see ``history.columns``."""

from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from splitbrain.history.columns import (
    INFO,
    INVOKE,
    NEVER,
    NEVER_COMPLETED,
    NOTHING,
    OK,
    UNKNOWN,
    Codes,
    Integers,
    Numbering,
    OperationColumns,
    Positions,
    ValueNumbering,
)


class EventColumns(msgspec.Struct, frozen=True):
    """Events in the order of their file; equal columns have equal lengths."""

    index: Integers
    #: Nanoseconds.
    time: Integers
    process: Integers
    #: ``INVOKE``, or a place in ``history.columns.OUTCOMES``.
    type: NDArray[np.int8]
    #: Codes into ``kinds``, ``keys``, ``values``, ``nodes`` and ``errors``.
    kind: Codes
    key: Codes
    value: Codes
    node: Codes
    error: Codes
    final: NDArray[np.bool_]
    kinds: Numbering
    keys: Numbering
    nodes: Numbering
    errors: Numbering
    values: ValueNumbering
    positions: Positions | None = None


def paired_columns(events: EventColumns) -> OperationColumns | None:
    """Pair events to operations; None where they break the rules of a history."""
    index, time, process = events.index, events.time, events.process
    type_, kind, key, value = events.type, events.kind, events.key, events.value
    node, error, final = events.node, events.error, events.final
    if len(index) == 0 or index[0] < 0 or np.any(index[1:] <= index[:-1]):
        return None
    # Sort events by process, each process's in order.
    order = np.argsort(process, kind="stable")
    same = process[order][1:] == process[order][:-1]
    earlier, later = order[:-1], order[1:]
    invoked = type_ == INVOKE
    follows = np.zeros(len(index), dtype=bool)
    follows[later] = same
    # An invocation comes first, or after an earlier answer.
    early = time[later] < time[earlier]
    unfit = invoked[later] & same & ((type_[earlier] == INVOKE) | early)
    # A completion comes after its invocation.
    completes = ~invoked[later] & same & invoked[earlier]
    if np.any(unfit) or np.count_nonzero(completes) != np.count_nonzero(~invoked):
        return None
    begun, ended = earlier[completes], later[completes]
    other = (key[ended] != key[begun]) & (key[ended] != NOTHING)
    if np.any((kind[ended] != kind[begun]) | other | (time[ended] < time[begun])):
        return None
    outcomes = np.full(len(index), INFO, dtype=np.int8)
    ends = np.full(len(index), NEVER, dtype=np.int64)
    results = np.full(len(index), UNKNOWN, dtype=np.int32)
    outcomes[begun] = type_[ended]
    errors = np.full(len(index), events.errors.of(NEVER_COMPLETED), dtype=np.int32)
    errors[begun] = error[ended]
    # The node of the answer counts, else that of the invocation.
    nodes, finals = node.copy(), final.copy()
    nodes[begun] = np.where(node[ended] == NOTHING, node[begun], node[ended])
    finals[begun] |= final[ended]
    known = type_[ended] != INFO
    ends[begun[known]] = time[ended[known]]
    succeeded = type_[ended] == OK
    results[begun[succeeded]] = value[ended[succeeded]]
    return OperationColumns(
        indexes=index[invoked],
        processes=process[invoked],
        starts=time[invoked],
        ends=ends[invoked],
        outcomes=outcomes[invoked],
        kinds=kind[invoked],
        keys=key[invoked],
        nodes=nodes[invoked],
        errors=errors[invoked],
        arguments=value[invoked],
        results=results[invoked],
        kind_names=events.kinds.things,
        key_names=events.keys.things,
        node_names=events.nodes.things,
        error_names=events.errors.things,
        values=events.values.things,
        flat=events.values.flat,
        finals=finals[invoked],
        positions=_placed(events.positions, begun, ended, invoked),
    )


def _placed(
    events: Positions | None, begun: Any, ended: Any, invoked: NDArray[np.bool_]
) -> Positions | None:
    if events is None or not events.known[ended].any():
        return None

    def moved(column: NDArray[Any]) -> NDArray[Any]:
        whole = np.zeros_like(column)
        whole[begun] = column[ended]
        return whole[invoked]

    return Positions(moved(events.known), moved(events.epochs), moved(events.offsets))
