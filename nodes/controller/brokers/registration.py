"""BrokerRegistration: a process becomes a broker of the cluster, fenced at first.

A second process with the same id waits until the first one's session is over. The same process may
register again and amends what it said; its epoch stays.

Source: KIP-631; KIP-858 (directories), KIP-584 (features); a real controller's cluster control.
"""

from splitbrain.nodes.controller.basis.contacts import Incarnation
from splitbrain.nodes.controller.basis.decisions import Decision, Refusal, View
from splitbrain.nodes.controller.basis.registrations import is_reserved
from splitbrain.nodes.controller.brokers.broker_transitions import replaced
from splitbrain.nodes.controller.brokers.endpoints import record_endpoints
from splitbrain.nodes.metadata.image import METADATA_VERSION, MetadataImage
from splitbrain.nodes.metadata.records import MetadataRecord, RegisterBrokerRecord
from splitbrain.nodes.quorum.identifiers import Offset
from splitbrain.nodes.wire.errors import ApiError
from splitbrain.nodes.wire.families.brokers import (
    BrokerRegistrationRequest,
    BrokerRegistrationResponse,
)


def register_broker(view: View, request: BrokerRegistrationRequest, _version: int) -> Decision:
    """Return the broker's registration, preceded by what an earlier incarnation leaves behind.

    Raises Refusal: it may not register.
    """
    if request.cluster_id != view.cluster_id:
        raise Refusal(
            ApiError.INCONSISTENT_CLUSTER_ID,
            f"this is cluster {view.cluster_id}, not {request.cluster_id}",
        )
    existing = view.image.brokers.get(request.broker_id)
    is_known = existing is not None and existing.incarnation_id == request.incarnation_id
    amended = existing if is_known else None
    if existing is not None and amended is None:
        _refuse_second(view, existing)
    if request.is_migrating_zk_broker:
        raise Refusal(ApiError.BROKER_ID_NOT_REGISTERED, "brokers of ZooKeeper's time are unknown")
    _check_directories(view.image, request)
    end_points = record_endpoints(request.listeners)
    _check_features(view.image, request)
    epoch = view.next_offset if amended is None else amended.broker_epoch
    records: list[MetadataRecord] = [] if amended else replaced(view, request.broker_id)
    records.append(
        RegisterBrokerRecord(
            broker_id=request.broker_id,
            incarnation_id=request.incarnation_id,
            broker_epoch=epoch,
            end_points=end_points,
            features=request.features,
            rack=request.rack,
            fenced=amended is None or amended.fenced,
            in_controlled_shutdown=amended is not None and amended.in_controlled_shutdown,
            log_dirs=request.log_dirs,
        )
    )
    last_offset = Offset(view.next_offset + len(records) - 1)
    view.contacts.registered(request.broker_id, last_offset)
    answer = BrokerRegistrationResponse(
        throttle_time_ms=0, error_code=ApiError.NONE, broker_epoch=epoch
    )
    return Decision(answer, records)


def _refuse_second(view: View, existing: RegisterBrokerRecord) -> None:
    incarnation = Incarnation(existing.broker_id, existing.broker_epoch)
    if view.contacts.has_session(incarnation, view.now, view.settings.broker_session_timeout):
        raise Refusal(
            ApiError.DUPLICATE_BROKER_REGISTRATION,
            f"broker {existing.broker_id} is another process; should that be gone, its session "
            "will soon be over",
        )


def _check_directories(image: MetadataImage, request: BrokerRegistrationRequest) -> None:
    directories = request.log_dirs
    problem = None
    if not directories:
        problem = "a broker has at least one directory"
    elif any(is_reserved(each) for each in directories):
        problem = "a directory has a reserved id"
    elif len(set(directories)) < len(directories):
        problem = "two directories have the same id"
    else:
        for broker_id, broker in image.brokers.items():
            if broker_id != request.broker_id and not set(directories).isdisjoint(broker.log_dirs):
                problem = f"a directory is registered as broker {broker_id}'s"
    if problem is not None:
        raise Refusal(ApiError.INVALID_REGISTRATION, problem)


def _check_features(image: MetadataImage, request: BrokerRegistrationRequest) -> None:
    """All levels that the cluster works at have to be among those that the broker can."""
    for each in request.features:
        level = image.features.get(each.name, 0)
        _check_level(each.name, level, each.min_supported_version, each.max_supported_version)
    named = {each.name for each in request.features}
    if METADATA_VERSION not in named:
        raise Refusal(
            ApiError.INVALID_REGISTRATION, f"the broker does not say its {METADATA_VERSION}"
        )
    for name, level in image.features.items():
        if name not in named:
            _check_level(name, level, 0, 0)


def _check_level(name: str, level: int, lowest: int, highest: int) -> None:
    if not lowest <= level <= highest:
        raise Refusal(
            ApiError.UNSUPPORTED_VERSION,
            f"{name} is at level {level}, and the broker can do {lowest} to {highest}",
        )
