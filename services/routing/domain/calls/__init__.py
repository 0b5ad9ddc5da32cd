"""Synchronous calls as values and decisions (SYN): what a call is, where its time goes, how often it may be tried,
whom a selector prefers, what its settings must keep to, and in which words it ends.

Owns the accounting of a call (wall = productive + stall + overhead) and its ends. Refuses to wait, to speak to anybody
and to choose a Supply: choosing is `domain.selection`, asked once a round like for every Task.
"""
