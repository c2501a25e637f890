"""The parts of `scripts/fuzz`: what is recorded, how it is damaged, and what reads it."""
