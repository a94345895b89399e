"""Clusters under faults in pytest tests of one's own; loaded by pytest, imported by nobody else."""
