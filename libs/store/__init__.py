"""PostgreSQL for the contexts: connections with bounds, one unit of work, one way to migrate.

Owns the engine and its limits (`engine`), the unit of work and its retries (`database`), statements of
concurrent callers in one (`gathering`, `lane`), the translation of driver
errors to Faults (`errors`) and the running of a context's migrations in its own schema (`migrations`).
Refuses to know any table: those belong to the contexts, each in a schema of its own.
"""
