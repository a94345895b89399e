"""Histories of share groups: which records members were given, for how long, and settled."""
