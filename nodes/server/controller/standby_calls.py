"""Answers to requests at a controller that is not active. Must never append."""

from splitbrain.nodes.controller.roles.active import Identity
from splitbrain.nodes.controller.roles.standby import read, wrong_controller
from splitbrain.nodes.metadata.image import MetadataImage
from splitbrain.nodes.quorum.replica import Replica
from splitbrain.nodes.server.controller.controller_calls import Call
from splitbrain.nodes.wire.errors import ApiError


def answer_as_standby(
    call: Call, identity: Identity, image: MetadataImage, replica: Replica
) -> None:
    """Note that the answer from what is committed, where that is enough; else whom to ask."""
    answer = read(identity, image, call.api_key, call.message, call.version)
    if answer is None:
        refuse_as_standby(call, replica)
    else:
        call.reply(answer)


def refuse_as_standby(call: Call, replica: Replica) -> None:
    """Nobody here can decide that, or say what became of it."""
    call.refuse(ApiError.NOT_CONTROLLER, wrong_controller(replica.leader_id))
