"""Public price tables turned into rules of the catalogue.

Owns how LiteLLM's table is read, what its fields become, what is left out and why, and what changed since last time.
Refuses to guess: what a table does not state has no price, and a rule in prose is told, never modelled.
"""
