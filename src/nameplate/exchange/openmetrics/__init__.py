"""OpenMetrics text of what was measured: base units, names that end in them, counters that end in `_total`."""
