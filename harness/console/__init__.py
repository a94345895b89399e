"""The terminal: what is shown on it while something goes on, and what Ctrl-C does."""
