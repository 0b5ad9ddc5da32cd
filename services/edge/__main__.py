"""`python -m services.edge` hosts this context alone."""

from services.__main__ import main

main(["edge"])
