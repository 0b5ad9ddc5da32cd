"""`python -m services.runs` hosts this context alone."""

from services.__main__ import main

main(["runs"])
