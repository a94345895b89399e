"""The real nodes in a simulated world: hosts, clients, ghost state and invariants."""
