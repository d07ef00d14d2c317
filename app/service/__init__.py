"""Parts of a running scheduler service that belong to no layer below it.

What lives here: the watches and the handle that plugins get, the configuration that may change
while it runs, what answers other schedulers, and looking after the cache. What must not: HTTP
(``app.server``, put together in ``app.endpoints``) and decisions. Neighbours: ``app.main`` (puts
the parts together), ``app.scheduler`` and ``app.extender_server`` below.
"""
