"""Messages to values and back, total in both directions; nothing else happens here.

Owns `task` (Tasks, Attempts, Selections, alerts), `peers` (what health, capacity, cost_quote and provider_adapter say
and are told), `usage` (what was used and what it costs) and `catalog` (the catalogue's objects). Refuses to decide, to
wait and to know a channel.
"""
