"""Clients: model names to adapters, with middleware and retries."""
