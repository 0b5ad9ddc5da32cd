"""Persistence of health: one contract, a memory twin and PostgreSQL."""
