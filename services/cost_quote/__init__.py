"""Cost and quotes: what a request would cost, where, and by which rule; and what may be spent.

Owns the price rules and their versions, the exchange rates told with them, quotes and the baseline of the guardrails;
and the tree of budgets with its ledger: limits, Holds, what was spent, one entry for every movement.
Refuses to know who won, what a Hold is for, whom a limit disappoints, and where prices were declared: the catalogue is
told to it, revision by revision, and kept.
"""
