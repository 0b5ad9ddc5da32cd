"""`python -m services.capacity` hosts this context alone."""

from services.__main__ import main

main(["capacity"])
