"""Projections of a pod: what each of its readers needs, decoded from the JSON of the store.

What lives here: :mod:`.columns` for tables and field selectors, :mod:`.controllers`,
:mod:`.kubelet` for hollow kubelets, and :mod:`.metrics` for what pods use. A field that a reader
comes to need is added to its projection alone, as pods are many and each field costs. What must
not: what the readers do with it.
"""
