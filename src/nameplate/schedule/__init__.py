"""When which request starts: pure functions of a plan and an index."""
