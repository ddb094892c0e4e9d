"""Percentiles, bounds, intervals, trends, shifts tests of arrivals: arithmetic that knows nothing of servers."""
