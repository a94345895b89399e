"""Client load from several processes: who does which slots, and one history from all of them.

One process carries some thousand operations a second of a real client; above that the worker slots
are shared out. Each process stamps its events by the clock that all processes of a machine share;
the run's own process merges, indexes and writes them (``worker_processes``).
"""
