"""A disk in memory, which loses what was not synced, rots and fails as asked."""
