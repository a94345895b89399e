"""Production and comparison of many runs: sweeps, suites, nights, shrinking, replay, the gate."""
