"""Nights that answer: a suite, a lake, an analysis of all runs, and the gate.

``definition`` reads the file, ``record`` keeps how far a night came, ``steps`` are those after a
suite, ``command`` carries all of it out and goes on where it was killed.
"""
