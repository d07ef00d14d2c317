"""Extenders as they are called: the wire, one extender, all of them. Attempts are elsewhere."""
