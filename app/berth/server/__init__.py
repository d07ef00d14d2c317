"""HTTP for people and tools: answers about a running scheduler, to those who may have them.

What lives here: the application, its routers, and HTTPS with delegated authentication and
authorization in front of it (``secure_serving``, ``access``); the client that ``berth explain``
uses. What must not: decisions and their words (``berth.explain``), and state. Every endpoint is a
coroutine, for then it runs on the scheduler's event loop, between two attempts; a plain function
would run in a thread and see a table that moves. Neighbours: ``berth.explain`` (answers),
``berth.main`` (puts the routers together), ``berth.commands`` and ``berth.embedded.up`` (serve
them).

Decision (2026-11): without a kubeconfig of their own, reviews go to the API server that pods are
scheduled on, and the scheduler asks for them as itself; because outside of a cluster nobody could
be known otherwise; instead of turning delegation off there, as kube-scheduler does.
"""
