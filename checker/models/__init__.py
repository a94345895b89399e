"""Promises of systems, as models: a few lines each, open to users' own."""
