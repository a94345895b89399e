"""Drivers: from a workload's operations to a protocol that services speak."""
