"""Volumes that a node can have attached."""
