"""Where routing keeps what it must not forget: in memory for tests and simulation, in PostgreSQL otherwise.

Owns the tables and migrations of the schema `routing` and the translation between rows and values.
Refuses to decide: what may change is decided by the domain, what may still be written by the guards of each statement.
"""
