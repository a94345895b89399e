"""A run in a simulated world: load, faults, recovery, and the folder it leaves."""
