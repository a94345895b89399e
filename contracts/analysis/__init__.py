"""Findings of the analysis on Spark: each declared once, for its tables, summaries and readers."""
