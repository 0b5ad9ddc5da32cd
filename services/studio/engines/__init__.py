"""Real models behind the studio's own routes, where the extra `local-models` is installed and asked for.

Without them the studio answers by itself: `domain/responder.py`, `domain/vectors.py` and `reading/`. Nothing here is
downloaded when it runs; the weights are in the packages.
"""
