"""Registers above the log: what clients of ours ask, write and read."""
