"""Providers, and the profiles of their models."""
