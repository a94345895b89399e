"""When the leader last heard of each broker: nothing that a log holds, so a new leader starts anew.

Source: KIP-631; a real controller's heartbeat manager.
"""


class Contacts:
    """Last heartbeats, by broker."""
