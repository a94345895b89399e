"""Simulated worlds: the world itself, disks of memory, and each system that can live in one."""
