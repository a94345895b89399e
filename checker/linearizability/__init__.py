"""Linearizability: is there an order, true to real time, that the model allows?"""
