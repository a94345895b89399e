"""Programs behind every quoted figure: ``python -m bench.NAME`` prints a table, then JSON."""
