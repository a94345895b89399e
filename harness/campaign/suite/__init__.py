"""Suites of tests: a matrix in a file, a time budget, a ledger that adds up (issue 4, item 8)."""
