"""Explanation of a violation: the few operations that contradict each other, related."""
