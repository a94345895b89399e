"""Brokers and controllers: registered, heard of, fenced, and what they ask for."""
