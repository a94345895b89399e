"""Keyed registers and sets: the state machine above the quorum's log. Pure."""
