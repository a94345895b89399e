"""Systems under test, one adapter each; ``systems.registry`` finds them by name."""
