"""Where price books are kept: in memory for tests and simulation, in PostgreSQL for good."""
