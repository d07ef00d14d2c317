"""Kubernetes objects, only the fields berth reads, decoded straight from API bytes.

What lives here: msgspec structs (one module per topic) and the value rules that go with them:
quantities, selectors, taints, effective pod requests. Pure functions of their arguments; no I/O, no
state. What must not: anything that knows nodes and pods at the same time beyond a plain rule
(plugins do that), and HTTP. Everything here is frozen; a changed object is a new object.
"""
