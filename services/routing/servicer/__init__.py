"""Inbound: decode, call the use-case, encode; a few lines a method. Faults are raised, never turned into statuses here.

Owns `RoutingService` (`routing`) and `CatalogService` (`catalog`). Refuses to decide.
"""
