"""Runs a recorded plan again, by its schedule, or a simulated world exactly."""
