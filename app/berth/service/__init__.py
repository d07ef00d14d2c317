"""The running process: ``berth run`` and ``berth extender``. See README.md.

What lives here: how a process is put together, the watches that feed its scheduler, configuration
that changes while it runs, looking after the cache, and a package each for HTTP, the page, extender
verbs and leader election. What must not: decisions, which are ``berth.scheduler``'s.
"""
