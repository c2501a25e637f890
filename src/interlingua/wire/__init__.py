"""Wire formats: pure functions that the dialects share. No I/O, clock, randomness or logging."""
