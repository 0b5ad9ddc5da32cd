"""Routing's use-cases, one a file: gather, decide, record.

Owns the order of effects: reserve, commit the intent, submit with no transaction open, record what came of it, give
back. Refuses to decide: every choice is a function of `domain`, every fact comes through a port.
"""
