"""What routing decides, as pure values and functions: no await, no clock, no chance, no machine."""
