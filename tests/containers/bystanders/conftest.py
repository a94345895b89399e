"""A foreign container for this folder; others import the fixtures they need."""

from tests.containers.bystanders.fixtures import foreign_container, helper_lock

__all__ = ["foreign_container", "helper_lock"]
