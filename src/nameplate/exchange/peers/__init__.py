"""One load test as another tool saw it: its numbers, their definitions, what contradicts, our verdict."""
