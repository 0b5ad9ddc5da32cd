"""Routing: takes a request, chooses a supply of it, and sees the request to an honest end.

Owns the catalogue (Channels, Supplies, policies, degradation rules, Public Models, bindings), Tasks, Attempts,
Selections, the durable queue, retry and switching, and the alerts that follow from them.
Refuses to open a socket to a provider, to compute a price, or to judge health: it asks provider_adapter,
cost_quote, health and capacity through ports and decides with what they answered, frozen.
"""
