"""A production document, read and checked whole (RUN-3): JSON in, a Plan or everything that is wrong with it out.

Owns the format: its fields, their notations, the limits of a document, which names may stand where. Every fault is a
JSON pointer into the request's body with a reason that tells the remedy. Refuses to know prices, models and providers:
whether a model exists and what it costs is asked of routing.
"""
