"""Two runs against each other: what differs, by how much, how certain that is, and what cannot be told."""
