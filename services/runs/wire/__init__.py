"""Proto <-> domain, total in both directions, and nothing else."""
