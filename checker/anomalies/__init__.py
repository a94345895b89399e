"""Names of what checkers find, and the sentences that tell it."""
