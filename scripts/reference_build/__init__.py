"""What `scripts/reference_tables.py` reads of the source, and how it writes it as Markdown."""
