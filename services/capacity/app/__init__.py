"""The use-cases of capacity, one a file: check, let the store decide by the ledger, tell who waits."""
