"""Known models and their profiles, as data."""
