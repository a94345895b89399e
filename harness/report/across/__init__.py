"""What all runs of a lake say together: a page, a summary, and the data of both."""
