"""`python -m services.cost_quote` hosts this context alone."""

from services.__main__ import main

main(["cost_quote"])
