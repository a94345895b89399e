"""Runs one experiment, on machines or in a simulated world: makes a run folder."""
