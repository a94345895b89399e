"""Makes a failed run on a real runtime small: a k-of-n oracle, a budget, simulation first."""
