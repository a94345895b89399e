"""The history of a run: what clients invoked and what they were told; reading and writing it."""
