"""Python types to JSON Schema, and JSON values to Python values of those types."""
