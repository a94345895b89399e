"""Sweeps of simulated runs: from a seed to a world, to a verdict."""
