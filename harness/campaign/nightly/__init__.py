"""Nights that answer: a suite, a lake, an analysis of all runs, and the gate."""
