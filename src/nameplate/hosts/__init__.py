"""What hardware a host has, and what its GPUs did over time. Every value says which host it describes."""
