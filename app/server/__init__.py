"""HTTP for people and tools: read-only answers about a running scheduler.

What lives here: the FastAPI application, the server that carries it, and the client of both that
``berth explain`` uses. What must not: decisions and their words (``app.explain``), and state. Every
endpoint is a coroutine, for then it runs on the scheduler's event loop, between two attempts; a
plain function would run in a thread and see a table that moves. Neighbours: ``app.explain``
(answers), ``app.main`` (makes the application).

There is no authorisation: the server listens on loopback only.
"""
