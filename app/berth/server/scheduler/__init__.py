"""Endpoints of the secure port: explain, simulate, snapshot, debug, profiling, z-pages.

What lives here: HTTP around ``berth.explain`` and ``berth.whatif``, and views of queue and cache
(``debug``). What must not: who may ask (``berth.server.access``), and anything that changes state.
"""
