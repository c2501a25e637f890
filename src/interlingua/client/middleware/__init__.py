"""Middleware around every call."""
