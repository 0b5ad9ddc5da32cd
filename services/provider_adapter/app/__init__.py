"""One use-case per file: read the materials, build, send, read the answer, store what was made."""
