"""Parts of a running scheduler service that belong to no layer below it.

What lives here: the watches and the handle that plugins get, the configuration that may change
while it runs, what answers other schedulers, and looking after the cache. What must not: HTTP
(``berth.service.server``, put together in ``berth.service``) and decisions. Neighbours: ``berth.service``
(puts the parts together), ``berth.scheduler`` and ``berth.service.extender_server`` below.
"""
