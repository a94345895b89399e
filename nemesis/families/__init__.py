"""Fault kinds, a module for each family.

Every module here is discovered and read for its ``KINDS``; there is no other registration.
"""
