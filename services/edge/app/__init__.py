"""The use-cases of the edge, one a file."""
