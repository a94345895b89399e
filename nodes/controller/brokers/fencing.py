"""Brokers that go without a word, and brokers that are sent away.

One broker is fenced at a time, so that what comes of it is in the image before the next one's
partitions are looked at.

Source: KIP-631; a real controller's periodic fencing, and its UnregisterBroker (KIP-746).
"""

from splitbrain.nodes.controller.basis.batch_limit import RecordBatch
from splitbrain.nodes.controller.basis.decisions import Decision, Refusal, View
from splitbrain.nodes.controller.brokers import broker_transitions
from splitbrain.nodes.wire.errors import ApiError
from splitbrain.nodes.wire.families.brokers import UnregisterBrokerRequest, UnregisterBrokerResponse


def fence_stale(view: View) -> Decision | None:
    """Fences the broker heard of longest ago whose session is over; None if there is none.

    To be asked again once the records are in the image: more may be due. When the next session is
    over is for ``Contacts.next_stale_at`` to say. A broker that was fenced already is fenced again,
    as a real controller does; it changes nothing.
    """
    timeout = view.settings.broker_session_timeout
    for incarnation in view.contacts.stale(view.now, timeout):
        view.contacts.end_session(incarnation)
        broker = view.image.brokers.get(incarnation.broker_id)
        if broker is None or broker.broker_epoch != incarnation.epoch:
            # Of an earlier incarnation, or of nobody who ever registered.
            continue
        records = broker_transitions.fenced(view, broker)
        view.contacts.end_shutdown(broker.broker_id)
        return Decision(None, records)
    return None


def unregister_broker(view: View, request: UnregisterBrokerRequest, _version: int) -> Decision:
    """The broker is forgotten, alive or not.

    Raises Refusal: it is not registered, or too much would change at once.
    """
    broker = view.image.brokers.get(request.broker_id)
    if broker is None:
        raise Refusal(
            ApiError.BROKER_ID_NOT_REGISTERED,
            f"Broker ID {request.broker_id} is not currently registered",
        )
    records = broker_transitions.unregistered(view, broker)
    RecordBatch(view).check_room(len(records))
    view.contacts.forget(request.broker_id)
    answer = UnregisterBrokerResponse(
        throttle_time_ms=0, error_code=ApiError.NONE, error_message=""
    )
    return Decision(answer, records)
