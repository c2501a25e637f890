"""Pure helpers shared by the dialects: no I/O, no clock, no randomness, no logging."""
