"""HTTP endpoints of a running scheduler.

What lives here: what all servers share (the application, health, metrics, request bodies), and a
package per audience:

- ``access``: TLS, authentication and authorization in front of an application
- ``scheduler``: endpoints of the secure port, for people and tools
- ``extender``: endpoints of the extender port, for other schedulers

What must not: decisions and their words (``berth.insight.explain``), and state. Every endpoint is a
coroutine, because then it runs on the scheduler's event loop, between two scheduling attempts; a
plain function would run in a thread and see the node table change. Neighbours:
``berth.insight.explain`` and ``berth.service.extender_server`` (answers), ``berth.service`` (puts
the routers together), ``berth.service.scheduler_client`` (asks).
"""
