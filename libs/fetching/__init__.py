"""Fetching what users name by URL, without ever reaching where they must not (AUTH-4).

Owns the judgement of addresses (`addresses`), the port that asks for names (`names`) and the guarded fetcher
(`fetcher`): one lookup a connection, every answer checked, the connection made to exactly what was checked, redirects
one by one by the same rule, everything bounded. Refuses to know what the bytes mean, and to talk to providers.
"""
