"""Pure values and judgements: what is sent, what is heard, and what it proves. No I/O, no clock, no chance."""
