"""Configs and features: their tables and rules, requests that change and describe them."""
