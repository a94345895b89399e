"""The engine and a foreign container for this folder; others import the fixtures they need."""

from tests.containers.bystanders.fixtures import engine, foreign_container, helper_lock

__all__ = ["engine", "foreign_container", "helper_lock"]
