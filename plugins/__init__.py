"""Loader of users' own things: those that installed packages offer, and those of single files.

Each sort (systems, workloads, models, checkers, faults) has its registry in its own room, which
asks here for what is not its own. Imports only contracts; runs no code of others before it is asked
for by name.
"""
