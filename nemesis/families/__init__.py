"""Fault kinds, a module for each family.

A module is found by being here: it says ``KINDS``, and nothing else has to be told of them.
"""
