"""How the schema of the host came to be, version by version."""
