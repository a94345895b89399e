"""Workloads of clients: one file each, each operation a function of (seed, slot, n)."""
