"""Patches of our own source, applied in memory when a module is loaded.

A planted bug, or a user's own bug or mend, is a text file: a sentence or two, then a unified diff.
The files on disk stay as they are, and no bytecode of a changed module is read or written. A
process has one set of patches for its life. Must never be imported by what it changes.
"""
