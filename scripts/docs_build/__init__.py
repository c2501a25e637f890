"""
What `scripts/docs_tables.py` writes: a module for each of its names, with `texts()`.

`render`, `source` and `words` read the source for the module `reference`.
"""
