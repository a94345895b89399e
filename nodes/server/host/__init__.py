"""A node at work, whatever stands above its log: pump, disk, snapshots, and what it is given."""
