"""A node put together: its folder formatted, its settings read, its state recovered. No I/O."""
