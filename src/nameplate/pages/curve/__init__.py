"""Pages of curves: throughput and latency together, level by level, and the knee."""
