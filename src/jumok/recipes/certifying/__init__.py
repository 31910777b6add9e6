"""Comparing an exported model with PyTorch, one file a task: `certify(Export)` returns what certificate.json says."""
