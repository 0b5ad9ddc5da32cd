"""The deciding half of capacity: levels, leases and the ledger that admits or refuses. No clock, no I/O."""
