"""Runs: productions as graphs, followed to an honest end, with their whole history.

Owns Runs, their Nodes and their events, with gates, checks, canaries and steering; the reviews and dead letters of
people's desks; and the callbacks about ends of Runs. A single generation is a Run with one node, `main`.
Refuses to know which provider serves a node: it hands each node's request to routing as a Task and follows that.
"""
