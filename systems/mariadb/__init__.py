"""Adapter of MariaDB with Galera: servers of which each takes changes, and all certify them."""
