"""Cost and quotes: what a request would cost, where, and by which rule.

Owns the price rules and their versions, the exchange rates told with them, quotes and the baseline of the guardrails.
Budgets (holds, settlement) will live here too.
Refuses to know who won, what a caller may spend in routing's eyes, and where prices were declared: the catalogue is
told to it, revision by revision, and kept.
"""
