"""Endpoints of the secure port: explain, simulate, snapshot, debug, profiling, z-pages.

What lives here: HTTP around ``berth.insight.explain`` and ``berth.insight.whatif``, and views of
queue and cache (``debug``). What must not: who may ask (``berth.service.server.access``), and
anything that changes state.
"""
