"""State that several calls, and with some stores several processes, share."""
