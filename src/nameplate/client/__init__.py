"""The load client: it sends what the plan says and records what came back; it decides nothing else."""
