"""Percentiles, binomial bounds and censoring: pure arithmetic that knows nothing of servers."""
