"""BrokerHeartbeat: a broker lives, says what it wants, and learns what it is.

It is unfenced once it has applied its own registration, leaves in two steps if it leads anything
(others take over, then all others have heard of that), and at once if it leads nothing. Of its
directories it says which failed and which take nothing new. Nothing here looks at all partitions
unless the broker's state changes.

Source: KIP-631; KIP-841, KIP-858, KIP-1066; a real controller's heartbeat manager.
"""

from collections.abc import Callable, Mapping
from enum import Enum
from types import MappingProxyType
from typing import Final

import msgspec

from splitbrain.nodes.controller.basis.contacts import Incarnation
from splitbrain.nodes.controller.basis.decisions import Decision, View
from splitbrain.nodes.controller.basis.registrations import registered
from splitbrain.nodes.controller.brokers import broker_transitions
from splitbrain.nodes.metadata.delta import MetadataDelta
from splitbrain.nodes.metadata.records import (
    BrokerRegistrationChangeRecord,
    MetadataRecord,
    RegisterBrokerRecord,
)
from splitbrain.nodes.quorum.identifiers import UNKNOWN_OFFSET, Offset
from splitbrain.nodes.wire.errors import ApiError
from splitbrain.nodes.wire.families.brokers import BrokerHeartbeatRequest, BrokerHeartbeatResponse


class BrokerState(Enum):
    """State of a broker as the controller sees it."""

    FENCED = 0
    UNFENCED = 1
    #: It leads nothing any more, and the others do not all know that yet.
    CONTROLLED_SHUTDOWN = 2
    #: Fenced, and told to go.
    SHUTDOWN_NOW = 3


_OUT_OF_SERVICE: Final = (BrokerState.FENCED, BrokerState.SHUTDOWN_NOW)
#: Record that a change to a state writes.
_TRANSITIONS: Final[
    Mapping[BrokerState, Callable[[View, RegisterBrokerRecord], list[MetadataRecord]]]
] = MappingProxyType(
    {
        BrokerState.FENCED: broker_transitions.fenced,
        BrokerState.SHUTDOWN_NOW: broker_transitions.fenced,
        BrokerState.UNFENCED: broker_transitions.unfenced,
        BrokerState.CONTROLLED_SHUTDOWN: broker_transitions.shutting_down,
    }
)


def heartbeat(view: View, request: BrokerHeartbeatRequest, _version: int) -> Decision:
    """Decide the next state of the broker that sent a heartbeat.

    Raises Refusal: it is not registered with this epoch.
    """
    contacts, broker_id = view.contacts, request.broker_id
    # Whoever it is, its session begins anew: what is heard counts before it is looked at.
    contacts.hear(Incarnation(broker_id, request.broker_epoch), view.now)
    broker = registered(view.image, broker_id, request.broker_epoch)
    present = _present_state(view, broker)
    state = _next_state(view, request, broker, present)
    records: list[MetadataRecord] = []
    if state is not present:
        records += _TRANSITIONS[state](view, broker)
    if request.offline_log_dirs:
        records += _lost(view, broker, request.offline_log_dirs, records)
    records += broker_transitions.directories_cordoned(broker, request.cordoned_log_dirs)
    _note(view, request, state, records)
    answer = BrokerHeartbeatResponse(
        throttle_time_ms=0,
        error_code=ApiError.NONE,
        is_caught_up=_has_own_registration(view, request, broker),
        is_fenced=state in _OUT_OF_SERVICE,
        should_shut_down=state is BrokerState.SHUTDOWN_NOW,
    )
    return Decision(answer, records)


def _present_state(view: View, broker: RegisterBrokerRecord) -> BrokerState:
    if view.contacts.shutdown_offset(broker.broker_id) is not None:
        return BrokerState.CONTROLLED_SHUTDOWN
    return BrokerState.FENCED if broker.fenced else BrokerState.UNFENCED


def _next_state(
    view: View, request: BrokerHeartbeatRequest, broker: RegisterBrokerRecord, present: BrokerState
) -> BrokerState:
    if present is BrokerState.FENCED:
        if request.want_shut_down:
            return BrokerState.SHUTDOWN_NOW
        if request.want_fence:
            return present
        return BrokerState.UNFENCED if _has_own_registration(view, request, broker) else present
    leads = request.want_shut_down or present is BrokerState.CONTROLLED_SHUTDOWN
    leads = leads and view.leaderships.count(view.image, broker.broker_id) > 0
    if present is BrokerState.CONTROLLED_SHUTDOWN:
        # Having begun it, the broker goes whatever it wants now.
        return BrokerState.SHUTDOWN_NOW if _may_go(view, broker) and not leads else present
    if not request.want_shut_down:
        return BrokerState.FENCED if request.want_fence else present
    if leads and not request.want_fence:
        return BrokerState.CONTROLLED_SHUTDOWN
    return BrokerState.SHUTDOWN_NOW


def _may_go(view: View, broker: RegisterBrokerRecord) -> bool:
    """Whether all that serve have heard who leads in the broker's place."""
    awaited = view.contacts.shutdown_offset(broker.broker_id)
    applied = view.contacts.lowest_active_offset(view.image)
    if awaited is None or applied is None:
        return True
    return awaited <= applied


def _has_own_registration(
    view: View, request: BrokerHeartbeatRequest, broker: RegisterBrokerRecord
) -> bool:
    own = view.contacts.registration_offset(broker.broker_id, broker.broker_epoch)
    return request.current_metadata_offset >= own


def _lost(
    view: View, broker: RegisterBrokerRecord, offline: tuple[str, ...], before: list[MetadataRecord]
) -> list[MetadataRecord]:
    """Write records of lost directories on top of those of the broker's change of state.

    A real controller looks past that change, and may leave the broker leading from a directory
    that it has just reported lost.
    """
    if before:
        delta = MetadataDelta(view.image)
        for record in before:
            delta.replay(record)
        view = msgspec.structs.replace(view, image=delta.apply(view.image.provenance))
    return broker_transitions.directories_lost(view, broker, offline)


def _note(
    view: View, request: BrokerHeartbeatRequest, state: BrokerState, records: list[MetadataRecord]
) -> None:
    """Note in the contacts what holds once the records are appended."""
    contacts, broker_id = view.contacts, request.broker_id
    contacts.report(broker_id, Offset(request.current_metadata_offset))
    if any(isinstance(record, BrokerRegistrationChangeRecord) for record in records):
        # As a real controller: a broker that changes has to say anew how far it is.
        contacts.report(broker_id, UNKNOWN_OFFSET)
    if state in _OUT_OF_SERVICE:
        contacts.end_shutdown(broker_id)
    elif state is BrokerState.CONTROLLED_SHUTDOWN:
        contacts.begin_shutdown(broker_id, Offset(view.next_offset + len(records) - 1))
