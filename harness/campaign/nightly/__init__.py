"""Nights that answer: a suite, a lake, what the runs say together, and the gate.

``definition`` reads the file, ``record`` keeps how far a night came, ``steps`` are what follows a
suite, ``command`` carries all of it out and goes on where it was killed.
"""
