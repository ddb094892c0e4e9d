"""Pages of single trials: every request, every distribution, every check."""
