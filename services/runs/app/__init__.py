"""The use-cases of runs, one a file."""
