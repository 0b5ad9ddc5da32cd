"""The contracts between contexts <-> the public shapes, one file for each context; nothing else."""
