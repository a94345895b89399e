"""Definitions of messages that the library lacks, in the form in which it has the others."""
