"""Capacity: who may use which slot now.

Owns levels (a whole kind, a Channel, a Supply) with their gates (concurrency, requests and tokens a minute, what health
allows), and leases: one row per holder, never a counter. Its nouns: Subject, Level, HealthLimit, Lease, Refusal, Gate.
One reservation decides all gates of all levels at once, both slots or neither; a refusal consumes nothing and names the
gate that binds and the earliest time at which a retry can succeed.

Refuses to know why somebody wants a slot, to choose between Supplies (routing does) and to judge health: it is told
what health allows, and keeps the newest it was told. Knows no other context.
"""
