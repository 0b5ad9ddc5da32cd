"""`python -m services.provider_adapter` hosts this context alone."""

from services.__main__ import main

main(["provider_adapter"])
