"""Pages of capacity and rate studies: the boundary, its trials against the limit, and the search."""
