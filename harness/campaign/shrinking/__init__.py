"""Reduction of a failed run's plan: a k-of-n oracle, a budget, simulation first."""
