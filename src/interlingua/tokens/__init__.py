"""Offline token estimates."""
