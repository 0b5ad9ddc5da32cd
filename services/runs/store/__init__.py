"""Where Runs and their events are kept: in memory for tests and simulation, in PostgreSQL for good."""
