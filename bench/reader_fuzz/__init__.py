"""A fuzz of the readers of histories against plain ones; ``python -m bench.reader_fuzz``.

The plain readers (``plain_*``) are small, slow and written from the formats' definitions. They
share no code with the rooms that they judge: nothing of ``history`` and ``checker`` is imported
by them.
"""
