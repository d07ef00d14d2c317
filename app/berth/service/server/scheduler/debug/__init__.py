"""``/debug``: what the scheduler believes and waits for, for people who look for a fault.

What lives here: the models, a module per thing that is looked at, the comparison of the cache with
the API server, and the endpoints. What must not: changing anything, and explaining (that is
``berth.insight.explain``). A page costs at most one look at everything of its kind, and the sorting
of one page. It is made without awaiting, so it is true of one moment; but for the queue and the
comparison, whose looks are long enough to be cut in pieces. Neighbours: ``berth.scheduler`` and
below (looked at), ``berth.service`` (connects).
"""
