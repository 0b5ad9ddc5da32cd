"""The deciding half of health: pure values, the state table and the one step function. No clock, no I/O."""
