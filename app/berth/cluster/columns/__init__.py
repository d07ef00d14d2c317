"""What ``kubectl get`` shows, one module per kind: the table columns of the API server.

What lives here: which columns a kind has and how an object fills them. What must not: HTTP, the
store, the clock (an age is left open as :class:`~berth.cluster.columns.cells.Since`). Neighbours:
``berth.cluster.registry`` hands the columns to the kinds, ``berth.cluster.tables`` makes tables of
them.
"""
