"""Client load from several processes: who does which slots, and one history from all of them.

One process carries some thousand operations a second of a real client; above that the worker
slots are shared out over worker processes. Each stamps its events by the clock that all processes
of a machine share and hands them over with a watermark, a moment before which it has nothing more
to tell. The run's own process merges the events up to the oldest watermark, gives them their
index and writes them, so that the history is at any moment all that happened up to some moment.
"""
