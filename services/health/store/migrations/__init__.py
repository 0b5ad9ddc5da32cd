"""How the schema of health came to be, version by version."""
