"""Contacts of the active controller with brokers, which no record holds: when, and how far.

Kept by a leader alone and lost with it: a new leader gives every broker that is not fenced a whole
session from now on, and knows nothing of their offsets until they tell them. Handlers note here
what they hear; nothing else in this room is ever changed. Must never be asked for the time: whoever
calls says what time it is, and time must not go back.

Source: KIP-631; a real controller's heartbeat manager and heartbeat tracker.
"""

from typing import NamedTuple

from splitbrain.nodes.metadata.image import MetadataImage
from splitbrain.nodes.quorum.identifiers import UNKNOWN_OFFSET, Microseconds, Offset


class Incarnation(NamedTuple):
    """One registration of a broker."""

    broker_id: int
    epoch: int


class Contacts:
    """Sessions of incarnations, and what each broker's heartbeats last said."""

    def __init__(self) -> None:
        #: The one heard of longest ago comes first.
        self._heard: dict[Incarnation, Microseconds] = {}
        self._reported: dict[int, Offset] = {}
        #: Offset that the other brokers must have applied before a broker may go.
        self._shutdowns: dict[int, Offset] = {}
        self._registered: dict[int, Offset] = {}

    @classmethod
    def of_new_leader(cls, image: MetadataImage, now: Microseconds) -> "Contacts":
        """Return the contacts of a new leader: a session for each broker that is not fenced.

        Where a registration stands that another leader wrote, it does not know; the image's end is
        not before it, and a broker gets there soon.
        """
        contacts = cls()
        for broker_id, broker in sorted(image.brokers.items()):
            contacts.registered(broker_id, image.provenance.last_offset)
            if not broker.fenced:
                contacts.hear(Incarnation(broker_id, broker.broker_epoch), now)
        return contacts

    def hear(self, incarnation: Incarnation, now: Microseconds) -> None:
        """Note that an incarnation gave a sign of life; true or not, its session begins anew."""
        self._heard.pop(incarnation, None)
        self._heard[incarnation] = now

    def has_session(
        self, incarnation: Incarnation, now: Microseconds, timeout: Microseconds
    ) -> bool:
        """Whether the incarnation was heard of within the timeout."""
        heard = self._heard.get(incarnation)
        return heard is not None and now - heard <= timeout

    def stale(self, now: Microseconds, timeout: Microseconds) -> tuple[Incarnation, ...]:
        """Incarnations whose session is over, the one heard of longest ago first."""
        found: list[Incarnation] = []
        for incarnation, heard in self._heard.items():
            if now - heard <= timeout:
                break
            found.append(incarnation)
        return tuple(found)

    def next_stale_at(self, timeout: Microseconds) -> Microseconds | None:
        """When the next session is over; None while nobody has one."""
        for heard in self._heard.values():
            return Microseconds(heard + timeout + 1)
        return None

    def end_session(self, incarnation: Incarnation) -> None:
        """Note that the session is over and was dealt with."""
        self._heard.pop(incarnation, None)

    def registered(self, broker_id: int, offset: Offset) -> None:
        """The broker's registration stands at this offset; what an earlier one said is void."""
        self.forget(broker_id)
        self._registered[broker_id] = offset

    def registration_offset(self, broker_id: int, epoch: int) -> Offset:
        """Return the broker's applied offset, if it covers the registration with this epoch.

        Not before its epoch, which is all there is of one that was never noted here.
        """
        return self._registered.get(broker_id, Offset(epoch))

    def report(self, broker_id: int, offset: Offset) -> None:
        """Note that the broker has applied everything up to this offset."""
        self._reported[broker_id] = offset

    def begin_shutdown(self, broker_id: int, offset: Offset) -> None:
        """The broker may go once the others have applied this offset; the first word counts."""
        self._shutdowns.setdefault(broker_id, offset)

    def end_shutdown(self, broker_id: int) -> None:
        """Note that the broker is fenced: there is nothing to wait for any more."""
        self._shutdowns.pop(broker_id, None)

    def shutdown_offset(self, broker_id: int) -> Offset | None:
        """Return the offset that the others must apply before the broker may go; None: it stays."""
        return self._shutdowns.get(broker_id)

    def lowest_active_offset(self, image: MetadataImage) -> Offset | None:
        """Return the least applied offset of brokers neither fenced nor going; None without any."""
        return min(
            (
                self._reported.get(broker_id, UNKNOWN_OFFSET)
                for broker_id, broker in image.brokers.items()
                if not broker.fenced and broker_id not in self._shutdowns
            ),
            default=None,
        )

    def forget(self, broker_id: int) -> None:
        """Note that the broker's incarnation is no more; its session ends by itself."""
        self._reported.pop(broker_id, None)
        self._shutdowns.pop(broker_id, None)
        self._registered.pop(broker_id, None)
