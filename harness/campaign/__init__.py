"""Makes and weighs many runs: sweeps, suites, nights, shrinking, replay, the gate."""
