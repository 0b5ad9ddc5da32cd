"""Materials: what users give as input, taken in once and by one rule, wherever it comes from.

Owns what bytes are by their first bytes (`sniffing`), what a picture, clip or sound measures (`probing`), what streams
a finished work holds (`examining`), how alike pictures look (`likeness`), how much is accepted (`limits`), and the
intake that fetches or takes, checks and keeps it by digest (`intake`).
Refuses to know which model or provider it is for, and who may read it.
"""
