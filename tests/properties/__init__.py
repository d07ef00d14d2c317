"""Invariants of the whole scheduler on made-up clusters, against rules told a second time."""
