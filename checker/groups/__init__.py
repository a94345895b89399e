"""Histories of consumer groups: what members were given and read, and what they committed."""
