"""The pure KRaft core: ``Replica.step(now, event) -> effects`` (see ``replica``)."""
