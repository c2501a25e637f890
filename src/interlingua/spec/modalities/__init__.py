"""The values and results of operations, one module per modality."""
