"""Part of a history as a problem in integers, and the outcome of its search."""
