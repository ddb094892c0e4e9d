"""Pages of soaks: throughput and latency over hours on one axis, drift, and the fate of every request."""
