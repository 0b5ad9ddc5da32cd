"""Synchronous calls as use-cases (SYN): admitted at the door, placed together with those of the same turn, sent once
their intent is durable, and settled after their callers have their answers.

Owns the one loop in which a call tries, switches, waits and ends. Refuses the durable queue: a call whose process dies
is not taken up again, only closed (`end_orphans`).
"""
