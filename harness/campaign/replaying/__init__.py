"""Repetition of a recorded run, by its schedule, or exactly for a simulated world."""
