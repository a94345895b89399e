"""Models of systems' promises: a few lines each, open to users' own."""
