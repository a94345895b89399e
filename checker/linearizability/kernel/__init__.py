"""Compiled search and compiled zones: layouts, rules, memory, and the cache of their code."""
