"""Drills (SLO-2): one controlled fault each, in a stack of their own, and a report of what it cost.

Owns the faults, the measures and the promises that they are held against. Refuses to touch a stack that somebody uses:
a drill damages files, revokes keys and puts databases back.
"""
