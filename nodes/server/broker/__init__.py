"""A small broker on a node that is no voter, with its records above the same log."""
