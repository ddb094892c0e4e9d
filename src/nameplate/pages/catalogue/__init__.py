"""A site of many runs: what each is, its numbers side by side with those that compare, and its own page."""
