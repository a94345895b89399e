"""History of a run: clients' invocations and the answers to them; reading and writing it."""
