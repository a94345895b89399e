"""Planted bugs of the small broker: known ways to get it wrong, each a branch in the code, all off.

As ``nodes.quorum.bugs``, with which it shares one list of names: ``nodes.server.start.planted``.
"""

from typing import Final

import msgspec


class BrokerBugs(msgspec.Struct, frozen=True):
    """Which bugs are on. The default is the correct broker."""

    #: A broker answers whether or not it has to believe that it is fenced.
    fenced_broker_serves: bool = False
    #: A broker believes the controller's word that it is unfenced, before its own image says so.
    own_registration_not_awaited: bool = False
    #: A broker goes back to the image before the newest one, for half a second.
    older_image_shown: bool = False
    #: The epoch of a clean stop stays on the disk, and lives that crash pass it on.
    clean_stop_kept: bool = False
    #: A broker sends a change again where a controller may have carried it out.
    change_sent_again: bool = False


NO_BUGS: Final = BrokerBugs()
