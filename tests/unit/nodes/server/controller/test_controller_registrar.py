"""A controller asks to be registered until that is acknowledged; then its log has to arrive."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import msgspec
import pytest

from splitbrain.nodes.metadata.machine import MetadataMachine
from splitbrain.nodes.metadata.records import (
    FeatureLevelRecord,
    MetadataRecord,
    RegisterControllerRecord,
)
from splitbrain.nodes.metadata.serde import encode_record
from splitbrain.nodes.quorum.identifiers import Epoch, NodeId, Offset
from splitbrain.nodes.quorum.replica import Replica
from splitbrain.nodes.server.controller.controller_registrar import ControllerRegistrar
from splitbrain.nodes.wire.batches import Record, RecordBatch
from splitbrain.nodes.wire.families.controllers import (
    ControllerRegistrationRequest,
    ControllerRegistrationResponse,
)
from tests.unit.nodes.server.hand_made_world import World

ME, MINE, EARLIER, FIRST = 2, "2" * 32, "e" * 32, "f" * 32
TAKEN = ControllerRegistrationResponse(throttle_time_ms=0, error_code=0, error_message="")
REFUSED = ControllerRegistrationResponse(throttle_time_ms=0, error_code=41, error_message="")
LONG_US = 600_000_000


class Laggard:
    """The registrar of controller 2, whose log the test lets arrive; controller 1 is active."""

    def __init__(self) -> None:
        self.world = World()
        self.machine = MetadataMachine()
        self.requests: list[Callable[[msgspec.Struct | None], None]] = []
        self.registrar = ControllerRegistrar(
            ControllerRegistrationRequest(
                controller_id=ME,
                incarnation_id=MINE,
                zk_migration_ready=False,
                listeners=(),
                features=(),
            ),
            self.machine,
            cast("Replica", SimpleNamespace(leader_id=1)),
            cast("Any", self.world),
            self._call,
        )
        self.arrives(FeatureLevelRecord("metadata.version", 30))

    def _call(
        self, peer: NodeId, _: msgspec.Struct, called: Callable[[msgspec.Struct | None], None]
    ) -> None:
        assert peer == 1
        self.requests.append(called)

    def arrives(self, record: MetadataRecord) -> None:
        offset = Offset(self.machine.end_offset)
        only = (Record(offset, 0, None, encode_record(record)),)
        self.machine.apply_batch(RecordBatch(offset, Epoch(1), 0, 0, only), lambda *_: None)
        self.registrar.look()

    def registered(self, incarnation_id: str) -> None:
        self.arrives(RegisterControllerRecord(ME, incarnation_id, False, (), ()))

    def wait(self) -> None:
        """Let all timers elapse, and look as often as a log that goes on makes it look."""
        handles, self.world.handles = self.world.handles, []
        self.world.time_us += LONG_US
        for handle in handles:
            if handle.action is not None:
                handle.action()
        self.registrar.look()


@pytest.fixture
def laggard() -> Laggard:
    return Laggard()


def test_what_was_acknowledged_is_not_asked_again_however_long_the_log_takes(
    laggard: Laggard,
) -> None:
    laggard.requests[0](TAKEN)
    laggard.wait()
    laggard.arrives(FeatureLevelRecord("group.version", 1))
    laggard.wait()
    assert len(laggard.requests) == 1
    laggard.registered(MINE)
    laggard.wait()
    assert laggard.registrar.is_registered
    assert len(laggard.requests) == 1


@pytest.mark.parametrize("answer", [None, REFUSED])
def test_what_was_not_acknowledged_is_asked_again(
    laggard: Laggard, answer: msgspec.Struct | None
) -> None:
    laggard.requests[0](answer)
    assert len(laggard.requests) == 1
    laggard.wait()
    assert len(laggard.requests) == 2


def test_another_life_s_registration_that_arrives_later_is_asked_to_be_replaced(
    laggard: Laggard,
) -> None:
    laggard.requests[0](TAKEN)
    laggard.wait()
    for place, incarnation_id in enumerate((FIRST, EARLIER), start=2):
        laggard.registered(incarnation_id)
        assert len(laggard.requests) == place
        laggard.requests[-1](TAKEN)
        laggard.wait()
        assert len(laggard.requests) == place
