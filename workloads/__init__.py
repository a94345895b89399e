"""What clients do: one file per workload, each operation a function of (seed, slot, n)."""
