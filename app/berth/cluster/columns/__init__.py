"""Columns of ``kubectl get``, one module per kind: the cells of the API server's tables.

What lives here: how an object fills the columns of its kind, which are data. What must not: HTTP,
the store, the clock (an age is left open as :class:`~berth.cluster.columns.cells.Since`).
Neighbours: ``berth.cluster.kinds`` hands the cells to the kinds, ``berth.cluster.http.tables``
makes tables of them.
"""
