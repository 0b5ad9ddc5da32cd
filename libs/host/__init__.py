"""What carries the contexts on a real machine: clocks, ids, an embedded database, start and stop of a process.

Owns the real `World`, the embedded PostgreSQL, the `Ticker` of background work and the order in which the contexts of
one process come up and go down. Refuses to know any context: what is hosted comes in as builders.
"""
