"""`python -m services.routing` hosts this context alone."""

from services.__main__ import main

main(["routing"])
