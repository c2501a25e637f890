"""The functions people call."""
