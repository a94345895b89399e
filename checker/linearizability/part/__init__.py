"""A part of a history as a problem in integers, and what a search found of it."""
