"""Brokers that are being changed: the image holds each one's registration as one record."""

from types import MappingProxyType
from typing import Any, Final

import msgspec

from splitbrain.nodes.metadata.drafts import Draft
from splitbrain.nodes.metadata.errors import ContradictionError
from splitbrain.nodes.metadata.records import (
    BrokerRegistrationChangeRecord,
    FenceBrokerRecord,
    RegisterBrokerRecord,
    UnfenceBrokerRecord,
    UnregisterBrokerRecord,
)

#: Values of a change's field ``fenced``.
_FENCED: Final = MappingProxyType({1: True, -1: False, 0: None})
#: Values of ``in_controlled_shutdown``; nothing ends one but a new registration.
_SHUTTING_DOWN: Final = MappingProxyType({1: True, 0: None})


class BrokersDraft(Draft[int, RegisterBrokerRecord]):
    """All brokers of the next image.

    Each method raises ContradictionError for a broker that is not registered with the record's
    epoch.
    """

    def register(self, record: RegisterBrokerRecord) -> None:
        """Note that a broker comes, or comes anew; its epoch does not go back."""
        known = self.get(record.broker_id)
        if known is not None and record.broker_epoch < known.broker_epoch:
            raise ContradictionError(
                f"broker {record.broker_id} is registered with epoch {known.broker_epoch}, and "
                f"would go back to {record.broker_epoch}"
            )
        self.set(record.broker_id, record)

    def unregister(self, record: UnregisterBrokerRecord) -> None:
        """Note that a broker goes."""
        self._registered(record.broker_id, record.broker_epoch, "unregister")
        self.remove(record.broker_id)

    def fence(self, record: FenceBrokerRecord | UnfenceBrokerRecord) -> None:
        """Note that a broker is fenced, or no longer."""
        is_fenced = isinstance(record, FenceBrokerRecord)
        known = self._registered(record.id, record.epoch, "fence" if is_fenced else "unfence")
        self.set(record.id, msgspec.structs.replace(known, fenced=is_fenced))

    def change(self, record: BrokerRegistrationChangeRecord) -> None:
        """Change a registration; raises ContradictionError also for a value without a meaning."""
        known = self._registered(record.broker_id, record.broker_epoch, "change")
        try:
            stated: dict[str, Any] = {
                "fenced": _FENCED[record.fenced],
                "in_controlled_shutdown": _SHUTTING_DOWN[record.in_controlled_shutdown],
                "log_dirs": record.log_dirs or None,
                "cordoned_log_dirs": record.cordoned_log_dirs,
            }
        except KeyError as error:
            raise ContradictionError(
                f"a change of broker {record.broker_id} says {error.args[0]} where that means "
                "nothing"
            ) from error
        changes = {name: value for name, value in stated.items() if value is not None}
        changed = msgspec.structs.replace(known, **changes)
        if changed != known:
            self.set(record.broker_id, changed)

    def _registered(self, broker_id: int, epoch: int, verb: str) -> RegisterBrokerRecord:
        known = self.get(broker_id)
        if known is None or known.broker_epoch != epoch:
            registered = "it is not" if known is None else f"it is with {known.broker_epoch}"
            raise ContradictionError(
                f"cannot {verb} broker {broker_id}, registered with epoch {epoch}: {registered}"
            )
        return known
