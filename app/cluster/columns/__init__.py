"""What ``kubectl get`` shows, one module per kind: the table columns of the API server.

What lives here: which columns a kind has and how an object fills them. What must not: HTTP, the
store, the clock (an age is left open as :class:`~app.cluster.columns.cells.Since`). Neighbours:
``app.cluster.registry`` hands the columns to the kinds, ``app.cluster.tables`` makes tables of
them.
"""
