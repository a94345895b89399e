"""Judges histories and logs. Pure: no clock, thread, socket, coroutine or random source."""
