"""How the schema of capacity came to be, version by version."""
