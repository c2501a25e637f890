"""A conversation that keeps its history: `Session`, and the store of sessions."""
