"""Persistence of capacity: one contract, a memory twin and PostgreSQL."""
