"""A run: `generate` and `stream`, the tool loop, deadlines, results."""
