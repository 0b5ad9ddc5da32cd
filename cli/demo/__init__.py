"""The demonstration: the production of one episode, or a burst of clips, on real media; it checks every fact it tells.

It starts a stack of its own, drives it through the public HTTP contract alone, makes providers fail through the
studio's lab, and compares what the product says with what the providers' ledger says.
"""
