"""Both makes of controllers: every body that asks for some is run on Kafka's and on ours."""

import pytest

from tests.referee.controllers import Controllers, KafkaControllers, OwnControllers


@pytest.fixture(
    params=[
        pytest.param(KafkaControllers(), id="kafka"),
        pytest.param(OwnControllers(), id="own"),
    ]
)
def controllers(request: pytest.FixtureRequest) -> Controllers:
    """A make of controllers."""
    made: Controllers = request.param
    return made
