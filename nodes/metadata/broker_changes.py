"""How records change a broker's registration, which the image holds as one record."""

from types import MappingProxyType
from typing import Any, Final

import msgspec

from splitbrain.nodes.metadata.drafts import Draft
from splitbrain.nodes.metadata.errors import ContradictionError
from splitbrain.nodes.metadata.records import (
    BrokerRegistrationChangeRecord,
    RegisterBrokerRecord,
    UnregisterBrokerRecord,
)

Brokers = Draft[int, RegisterBrokerRecord]
#: Values of a change's field ``fenced``.
_FENCED: Final = MappingProxyType({1: True, -1: False, 0: None})
#: Values of ``in_controlled_shutdown``; nothing ends one but a new registration.
_SHUTTING_DOWN: Final = MappingProxyType({1: True, 0: None})


def register(brokers: Brokers, record: RegisterBrokerRecord) -> None:
    """Note that a broker comes, or comes anew.

    Raises:
        ContradictionError: its epoch is below that of an earlier registration.
    """
    known = brokers.get(record.broker_id)
    if known is not None and record.broker_epoch < known.broker_epoch:
        raise ContradictionError(
            f"broker {record.broker_id} is registered with epoch {known.broker_epoch}, and would "
            f"go back to {record.broker_epoch}"
        )
    brokers.set(record.broker_id, record)


def unregister(brokers: Brokers, record: UnregisterBrokerRecord) -> None:
    """Note that a broker goes.

    Raises:
        ContradictionError: it is not registered with this epoch.
    """
    _registered(brokers, record.broker_id, record.broker_epoch, "unregister")
    brokers.remove(record.broker_id)


def fence(brokers: Brokers, broker_id: int, epoch: int, *, is_fenced: bool) -> None:
    """Note that a broker is fenced, or no longer.

    Raises:
        ContradictionError: it is not registered with this epoch.
    """
    known = _registered(brokers, broker_id, epoch, "fence" if is_fenced else "unfence")
    brokers.set(broker_id, msgspec.structs.replace(known, fenced=is_fenced))


def change(brokers: Brokers, record: BrokerRegistrationChangeRecord) -> None:
    """Return the change of a registration.

    Raises:
        ContradictionError: the broker is not registered with this epoch, or a field has a value
            that means nothing.
    """
    known = _registered(brokers, record.broker_id, record.broker_epoch, "change")
    try:
        said: dict[str, Any] = {
            "fenced": _FENCED[record.fenced],
            "in_controlled_shutdown": _SHUTTING_DOWN[record.in_controlled_shutdown],
            "log_dirs": record.log_dirs or None,
            "cordoned_log_dirs": record.cordoned_log_dirs,
        }
    except KeyError as error:
        raise ContradictionError(
            f"a change of broker {record.broker_id} says {error.args[0]} where that means nothing"
        ) from error
    changes = {name: value for name, value in said.items() if value is not None}
    changed = msgspec.structs.replace(known, **changes)
    if changed != known:
        brokers.set(record.broker_id, changed)


def _registered(brokers: Brokers, broker_id: int, epoch: int, verb: str) -> RegisterBrokerRecord:
    known = brokers.get(broker_id)
    if known is None or known.broker_epoch != epoch:
        registered = "it is not" if known is None else f"it is with {known.broker_epoch}"
        raise ContradictionError(
            f"cannot {verb} broker {broker_id}, registered with epoch {epoch}: {registered}"
        )
    return known
