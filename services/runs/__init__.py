"""Runs: productions as graphs, followed to an honest end, with their whole history.

Owns Runs, their Nodes and their events; a single generation is a Run with one node, `main`. Gates, canaries, steering,
review and dead letters will live here too.
Refuses to know which provider serves a node: it hands each node's request to routing as a Task and follows that.
"""
