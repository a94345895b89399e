"""A violation explained: the few operations that contradict each other, and how they relate."""
