"""The command line: a module of commands each, and what they share."""
