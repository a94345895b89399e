"""Faults and plans: what to break, when, and what must then be seen from outside.

Pure: no clock, no thread, no socket, no random source of its own. The nemesis decides; the
harness calls it and the runtime acts.
"""
