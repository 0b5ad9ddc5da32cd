"""How the schema of cost_quote came to be, version by version."""
