"""Values and decisions of the studio: accounts, jobs, prices, markers and the fault script. No I/O, no clock."""
