"""The report of all runs of a lake: a page, a summary, and the data of both."""
