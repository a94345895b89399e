"""Linearizability: existence of an order, true to real time, that the model allows."""
