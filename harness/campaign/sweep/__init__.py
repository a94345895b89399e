"""Simulated runs: from a seed to a world, to a verdict, and back to the few faults that matter."""
