"""A node's files: identity, quorum state and log. Blocking functions, no thread."""
