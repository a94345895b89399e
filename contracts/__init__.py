"""Records and protocols that the other rooms share; no logic beyond trivial accessors.

A room that implements something for another room (a runtime, a system, a client) implements a
protocol from here; a room that only passes data passes a record from here or from ``history``.
"""
