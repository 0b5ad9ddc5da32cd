"""`python -m cli` is `pointsman`."""

from cli.main import main

main()
