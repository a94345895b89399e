"""The controller in its two roles, active and standby, and who handles which request."""
