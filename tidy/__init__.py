"""The project's own check of its house style: what no linter knows. ``python -m tidy``.

It reads the tree and prints findings; it changes nothing and is imported by nothing that ships.
"""
