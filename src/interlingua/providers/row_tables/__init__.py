"""The rows of the built-in providers, by kind; `providers/rows.py` finds them."""
