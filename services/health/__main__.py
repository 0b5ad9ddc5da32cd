"""`python -m services.health` hosts this context alone."""

from services.__main__ import main

main(["health"])
