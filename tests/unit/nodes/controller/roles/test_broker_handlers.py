"""The registry: each API has a handler, and an answer for when all of it is refused."""

import pytest

from splitbrain.nodes.controller.roles.broker_handlers import BROKER_HANDLERS, BROKER_REFUSALS
from splitbrain.nodes.wire.apis import ApiKey, RequestHeader
from splitbrain.nodes.wire.calls import TABLES, encode_reply
from splitbrain.nodes.wire.controller_apis import CONTROLLER_VERSIONS
from splitbrain.nodes.wire.errors import ApiError
from splitbrain.nodes.wire.families.partitions import ElectLeadersRequest, PartitionsToElect

ELECTION = ElectLeadersRequest(topic_partitions=(PartitionsToElect(topic="t", partitions=(0, 1)),))


def test_every_handler_is_of_an_api_that_controllers_serve() -> None:
    assert BROKER_HANDLERS.keys() == BROKER_REFUSALS.keys()
    assert BROKER_HANDLERS.keys() <= CONTROLLER_VERSIONS.keys()


@pytest.mark.parametrize("api_key", BROKER_REFUSALS)
def test_a_refusal_can_be_said_in_every_version(api_key: ApiKey) -> None:
    table = TABLES[api_key]
    for version in range(table.versions.lowest, table.versions.highest + 1):
        answer = BROKER_REFUSALS[api_key](
            ELECTION, version, ApiError.NOT_CONTROLLER, "another leads"
        )
        assert type(answer) is table.response
        assert encode_reply(answer, RequestHeader(api_key, version, 1, None))
